package validate

// otherCalls are those of services for operators which change nothing that later calls need.
var otherCalls = []call{
	{
		procedure: "v1beta1.WebhookService/SetWebhook",
		body: `{"webhook": {"name": "hook", "url": "https://hooks.invalid/events", "secret": "hook",
			"types": ["allocation.granted"]}, "reason": "to tell others"}`,
	},
	{procedure: "v1beta1.WebhookService/ListWebhooks", body: `{}`},
	{procedure: "v1beta1.WebhookService/ResumeWebhook", body: `{"name": "hook", "fromNow": true}`},
	{procedure: "v1beta1.WebhookService/RemoveWebhook", body: `{"name": "hook"}`},
	{procedure: "v1beta1.WebhookService/RemoveWebhook", body: `{"name": "unknown"}`, status: 404},
	{procedure: "admin.v1.ClusterService/GetStatus", body: `{}`},
	{procedure: "admin.v1.ClusterService/GetStatus", body: `{}`, token: "-"},
	{procedure: "admin.v1.ClusterService/GetLevel", body: `{}`},
	{procedure: "admin.v1.ClusterService/RaiseLevel", body: `{}`},
	{procedure: "admin.v1.ClusterService/Checkpoint", body: `{}`},
	{procedure: "admin.v1.DebugService/GetDiagnostics", body: `{}`},
}

// errorCalls are refused for the caller or the request. The document refuses what is wrong in every state.
var errorCalls = []call{
	{procedure: "admin.v1.DebugService/GetDiagnostics", body: `{}`, token: "-", status: 401},
	{procedure: "v1.TreeService/ListTrees", body: `{}`, token: "bootstrap", status: 401},
	{
		procedure: "v1.TreeService/SetLimits", token: "hans", status: 403,
		body: `{"tree": "cern", "node": "atlas/physics", "limits": {"cores": {"amount": 60}}}`,
	},
	{procedure: "v1.TreeService/DeleteTree", body: `{"name": "cern"}`, token: "hans", status: 404},
	{procedure: "admin.v1.ClusterService/Checkpoint", body: `{}`, token: "hans", status: 403},
	{procedure: "v1.TreeService/GetTree", body: `{"name": "unknown"}`, status: 404},
	{procedure: "v1.TreeService/GetTree", body: `{"name": ""}`, status: 400, invalid: true},
	{procedure: "v1.TreeService/GetTree", body: `{"nam": "cern"}`, status: 400, invalid: true},
	{procedure: "v1.TreeService/GetTree", body: `{"name": 7}`, status: 400, invalid: true},
	{procedure: "v1.TreeService/GetTree", body: `{"name": "cern"`, status: 400, invalid: true},
	{procedure: "v1.TreeService/GetTree", body: `[]`, status: 400, invalid: true},
	{procedure: "v1.TreeService/GetTree", body: ``, status: 400, invalid: true},
	{
		procedure: "v1.TreeService/GetTree", status: 400, invalid: true,
		body: `{"name": "cern", "read": {"consistency": "FRESH"}}`,
	},
	{
		procedure: "v1.TreeService/GetTree", status: 400, invalid: true,
		body: `{"name": "cern", "read": {"minIndex": "-1"}}`,
	},
	{
		procedure: "v1.TreeService/SetLimits", status: 400, invalid: true,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"amount": 1, "unlimited": true}}}`,
	},
	{
		procedure: "v1.TreeService/SetLimits", status: 400, invalid: true,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {}}}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "two words", ` + physics + `}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "a", "ttlMs": 604800001, ` + physics + `}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "a", "mode": "MODE_MAYBE", ` + physics + `}`,
	},
	{procedure: "v1.AllocationService/BatchRelease", body: `{"requests": []}`, status: 400, invalid: true},
	{
		procedure: "admin.v1.ClusterService/JoinMember", status: 400, invalid: true,
		body: `{"id": "n9", "gossipAddress": "127.0.0.1:1"}`,
	},
	{
		procedure: "v1.TreeService/SetLimits", status: 409,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"amount": 1}}, "expectedRevision": 1}`,
	},
	{
		procedure: "v1.TreeService/SetLimits", status: 400,
		body: `{"tree": "cern", "node": "atlas", "limits": {"cores": {"amount": 10}}}`,
	},
}

// memberCalls change the members.
var memberCalls = []call{
	{procedure: "admin.v1.ClusterService/ListMembers", body: `{}`},
	{procedure: "admin.v1.ClusterService/DemoteMember", body: `{"id": "unknown"}`, status: 404},
	{procedure: "admin.v1.ClusterService/JoinMember", body: `{"id": "n3"}`},
	{procedure: "admin.v1.ClusterService/TransferLeader", body: `{"id": "n2"}`},
	{procedure: "admin.v1.ClusterService/DemoteMember", body: `{"id": "n3", "force": true}`},
	{procedure: "admin.v1.ClusterService/PromoteMember", body: `{"id": "n3"}`},
	{procedure: "admin.v1.ClusterService/RemoveMember", body: `{"id": "n3", "force": true}`},
	{procedure: "admin.v1.ClusterService/ListMembers", body: `{}`},
}
