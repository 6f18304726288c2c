package validate

// otherCalls are those of services for operators which change nothing that later calls need.
var otherCalls = []call{
	{
		procedure: "WebhookService/SetWebhook",
		body: `{"webhook": {"name": "hook", "url": "https://hooks.invalid/events", "secret": "hook",
			"types": ["allocation.granted"]}, "reason": "to tell others"}`,
	},
	{procedure: "WebhookService/ListWebhooks", body: `{}`},
	{procedure: "WebhookService/ResumeWebhook", body: `{"name": "hook", "fromNow": true}`},
	{procedure: "WebhookService/RemoveWebhook", body: `{"name": "hook"}`},
	{procedure: "WebhookService/RemoveWebhook", body: `{"name": "unknown"}`, status: 404},
	{procedure: "ClusterService/GetStatus", body: `{}`},
	{procedure: "ClusterService/GetStatus", body: `{"local": true}`, token: "-"},
	{procedure: "ClusterService/GetLevel", body: `{}`},
	{procedure: "ClusterService/RaiseLevel", body: `{}`},
	{procedure: "ClusterService/Checkpoint", body: `{}`},
	{procedure: "ClusterService/GetDigests", body: `{}`},
	{procedure: "DebugService/GetDiagnostics", body: `{}`},
}

// errorCalls are refused for the caller or the request. The document refuses what is wrong in every state.
var errorCalls = []call{
	{procedure: "DebugService/GetDiagnostics", body: `{}`, token: "-", status: 401},
	{procedure: "TreeService/ListTrees", body: `{}`, token: "bootstrap", status: 401},
	{
		procedure: "TreeService/SetLimits", token: "hans", status: 403,
		body: `{"tree": "cern", "node": "atlas/physics", "limits": {"cores": {"amount": 60}}}`,
	},
	{procedure: "TreeService/DeleteTree", body: `{"name": "cern"}`, token: "hans", status: 404},
	{procedure: "ClusterService/Checkpoint", body: `{}`, token: "hans", status: 403},
	{procedure: "TreeService/GetTree", body: `{"name": "unknown"}`, status: 404},
	{procedure: "TreeService/GetTree", body: `{"name": ""}`, status: 400, invalid: true},
	{procedure: "TreeService/GetTree", body: `{"nam": "cern"}`, status: 400, invalid: true},
	{procedure: "TreeService/GetTree", body: `{"name": 7}`, status: 400, invalid: true},
	{procedure: "TreeService/GetTree", body: `{"name": "cern"`, status: 400, invalid: true},
	{procedure: "TreeService/GetTree", body: `[]`, status: 400, invalid: true},
	{procedure: "TreeService/GetTree", body: ``, status: 400, invalid: true},
	{
		procedure: "TreeService/GetTree", status: 400, invalid: true,
		body: `{"name": "cern", "read": {"consistency": "FRESH"}}`,
	},
	{
		procedure: "TreeService/GetTree", status: 400, invalid: true,
		body: `{"name": "cern", "read": {"minIndex": "-1"}}`,
	},
	{
		procedure: "TreeService/SetLimits", status: 400, invalid: true,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"amount": 1, "unlimited": true}}}`,
	},
	{
		procedure: "TreeService/SetLimits", status: 400, invalid: true,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {}}}`,
	},
	{
		procedure: "AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "two words", ` + physics + `}`,
	},
	{
		procedure: "AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "a", "ttlMs": 604800001, ` + physics + `}`,
	},
	{
		procedure: "AllocationService/Allocate", status: 400, invalid: true,
		body: `{"id": "a", "mode": "MODE_MAYBE", ` + physics + `}`,
	},
	{procedure: "AllocationService/BatchRelease", body: `{"requests": []}`, status: 400, invalid: true},
	{
		procedure: "ClusterService/JoinMember", status: 400, invalid: true,
		body: `{"id": "n9", "gossipAddress": "127.0.0.1:1"}`,
	},
	{
		procedure: "TreeService/SetLimits", status: 409,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"amount": 1}}, "expectedRevision": 1}`,
	},
	{
		procedure: "TreeService/SetLimits", status: 400,
		body: `{"tree": "cern", "node": "atlas", "limits": {"cores": {"amount": 10}}}`,
	},
}

// memberCalls change the members.
var memberCalls = []call{
	{procedure: "ClusterService/ListMembers", body: `{}`},
	{procedure: "ClusterService/DemoteMember", body: `{"id": "unknown"}`, status: 404},
	{procedure: "ClusterService/JoinMember", body: `{"id": "n3"}`},
	{procedure: "ClusterService/TransferLeader", body: `{"id": "n2"}`},
	{procedure: "ClusterService/DemoteMember", body: `{"id": "n3", "force": true}`},
	{procedure: "ClusterService/PromoteMember", body: `{"id": "n3"}`},
	{procedure: "ClusterService/RemoveMember", body: `{"id": "n3", "force": true}`},
	{procedure: "ClusterService/ListMembers", body: `{}`},
}
