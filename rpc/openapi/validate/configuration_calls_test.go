package validate

// accessCalls make an administrator, guard the cluster and look at everything of access.
var accessCalls = []call{
	{procedure: "AccessService/WhoAmI", body: `{}`, token: "-"},
	{
		procedure: "AccessService/Bootstrap", token: "-", status: 401,
		body: `{"secret": "not the secret of this cluster at all"}`,
	},
	{
		procedure: "AccessService/Bootstrap", token: "-", keep: []string{"admin=secret"},
		body: `{"secret": "{{bootstrap}}"}`,
	},
	{procedure: "AccessService/SetAccessMode", body: `{"mode": "ACCESS_MODE_WATCHING", "reason": "to look"}`},
	{procedure: "TreeService/ListTrees", body: `{}`, token: "-"},
	{procedure: "AccessService/GetGuardReport", body: `{}`},
	{procedure: "AccessService/SetAccessMode", body: `{"mode": "ACCESS_MODE_GUARDED"}`},
	{procedure: "AccessService/WhoAmI", body: `{}`},
	{
		procedure: "AccessService/CreateAccount",
		body:      `{"account": {"name": "hans", "groups": ["ci"]}, "reason": "a user"}`,
	},
	{procedure: "AccessService/CreateAccount", body: `{"account": {"name": "anna"}}`},
	{
		procedure: "AccessService/UpdateAccount",
		body:      `{"account": {"name": "hans", "description": "of the grid"}}`,
	},
	{procedure: "AccessService/ListAccounts", body: `{"pageSize": 1}`},
	{
		procedure: "AccessService/CreateToken", body: `{"account": "hans", "lifeMs": 3600000}`,
		keep: []string{"hans=secret", "hansID=token.id"},
	},
	{
		procedure: "AccessService/CreateToken", body: `{"account": "anna", "lifeMs": "3600000", "verbs": ["usage.read"]}`,
		keep: []string{"annaID=token.id"},
	},
	{
		procedure: "AccessService/RotateToken", keep: []string{"hans=secret"},
		body: `{"id": "{{hansID}}", "overlapMs": 60000}`,
	},
	{procedure: "AccessService/ListTokens", body: `{"account": "hans"}`},
	{procedure: "AccessService/RevokeToken", body: `{"id": "{{annaID}}", "reason": "lost"}`},
	{
		procedure: "AccessService/RefuseCredential",
		body: `{"refused": {"kind": "REFUSED_KIND_USER", "name": "account/anna",
			"endsAt": "2030-01-01T00:00:00Z", "reason": "left"}}`,
	},
	{procedure: "AccessService/ListRefusedCredentials", body: `{}`},
	{procedure: "AccessService/AllowCredential", body: `{"kind": "REFUSED_KIND_USER", "name": "account/anna"}`},
	{procedure: "AccessService/DeleteAccount", body: `{"name": "anna"}`},
	{procedure: "AccessService/CanI", body: `{"questions": [{"verb": "hold", "tree": "cern"}]}`},
	{procedure: "AccessService/WhoCan", body: `{"verb": "access.manage"}`},
	{procedure: "AuditService/ListRecords", body: `{"newestFirst": true}`},
	{procedure: "AuditService/ListRecords", body: `{"source": "AUDIT_SOURCE_SERVER"}`},
}

// treeCalls configure trees.
var treeCalls = []call{
	{procedure: "TreeService/ApplyTrees", body: `{"dryRun": true, ` + cernTree + `}`},
	{procedure: "TreeService/ApplyTrees", body: `{"reason": "the beginning", ` + cernTree + `}`},
	{procedure: "TreeService/GetTree", body: `{"name": "cern"}`},
	{
		procedure: "TreeService/ListTrees",
		body:      `{"countRequests": true, "read": {"consistency": "CONSISTENCY_STALE"}}`,
	},
	{
		procedure: "TreeService/SetLimits",
		body:      `{"tree": "cern", "node": "atlas/physics", "limits": {"cores": {"amount": 30}}, "expectedRevision": "1"}`,
	},
	{
		procedure: "TreeService/SetLimits", status: 400,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"unlimited": true}}}`,
	},
	{procedure: "TreeService/MoveNode", body: `{"tree": "cern", "node": "cms/old", "newNode": "atlas/old"}`},
	{procedure: "TreeService/RollBack", body: `{"revision": 1}`},
	{
		procedure: "TreeService/HoldNode",
		body:      `{"tree": "cern", "node": "cms", "reason": "repairs", "forMs": 3600000}`,
	},
	{procedure: "TreeService/ListHolds", body: `{"tree": "cern"}`},
	{procedure: "TreeService/ResumeNode", body: `{"tree": "cern", "node": "cms"}`},
	{procedure: "TreeService/GetConfiguration", body: `{"manifest": true}`},
	{procedure: "TreeService/GetConfiguration", body: `{"tree": "cern", "node": "atlas"}`},
	{
		procedure: "TreeService/ParseManifest",
		body:      `{"text": "trees: {other: {policy: open, resources: {gpus: {unit: count}}, limits: {gpus: 4}}}"}`,
	},
	{procedure: "TreeService/ParseManifest", body: `{"text": "tree: {}"}`},
	{
		procedure: "TreeService/ScheduleLimits",
		body: `{"id": "night", "tree": "cern", "node": "atlas", "adjustments": {"cores": {"cap": 50}},
			"beginsAt": "2090-01-01T00:00:00Z", "endsAt": "2090-02-01T00:00:00Z", "reason": "maintenance"}`,
	},
	{procedure: "TreeService/ListScheduledLimits", body: `{}`},
	{procedure: "TreeService/CancelScheduledLimit", body: `{"id": "night"}`},
	{procedure: "TreeService/ListRevisions", body: `{"pageSize": 2}`},
	{procedure: "TreeService/ApplyTrees", body: `{"trees": [{"name": "scratch", "policy": "open",
			"resources": [{"name": "gpus", "unit": "UNIT_MILLI"}]}]}`},
	{procedure: "TreeService/DeleteTree", body: `{"name": "scratch", "reason": "done"}`},
}

// cernTree is a tree with a resource in counts and items.
const cernTree = `"trees": [{"name": "cern", "policy": "strict", "labels": {"site": "meyrin"},
	"resources": [{"name": "cores", "unit": "UNIT_COUNT"}, {"name": "memory", "unit": "UNIT_BYTES"},
		{"name": "node", "unit": "UNIT_ITEMS", "items": {"names": ["a", "b"], "state": "free", "released": "dirty",
			"expired": "dirty"}}],
	"limits": {"cores": {"amount": "100"}, "memory": {"unlimited": true}, "node": {"unlimited": true}},
	"leases": {"maxTtlMs": "86400000"}, "warnAt": {"percents": [80]},
	"nodes": [{"path": "atlas", "limits": {"cores": {"amount": 60}, "node": {"unlimited": true}},
			"bindings": [{"role": "node-admin", "to": ["account admin"]}]},
		{"path": "atlas/physics", "limits": {"cores": {"amount": 40}, "node": {"unlimited": true}},
			"principals": [{"users": ["hans"], "limits": {"cores": 20}}],
			"bindings": [{"role": "holder", "to": ["account hans"]}]},
		{"path": "cms", "limits": {"cores": {"amount": 40}}}, {"path": "cms/old", "limits": {"cores": {"amount": 0}}}]}]`
