package validate

// accessCalls make an administrator, guard the cluster and look at everything of access.
var accessCalls = []call{
	{procedure: "v1.IdentityService/WhoAmI", body: `{}`, token: "-"},
	{
		procedure: "admin.v1.AccessService/Bootstrap", token: "-", status: 401,
		body: `{"secret": "not the secret of this cluster at all"}`,
	},
	{
		procedure: "admin.v1.AccessService/Bootstrap", token: "-", keep: []string{"admin=secret"},
		body: `{"secret": "{{bootstrap}}"}`,
	},
	{procedure: "admin.v1.AccessService/SetAccessMode", body: `{"mode": "ACCESS_MODE_WATCHING", "reason": "to look"}`},
	{procedure: "v1.TreeService/ListTrees", body: `{}`, token: "-"},
	{procedure: "admin.v1.AccessService/GetGuardReport", body: `{}`},
	{procedure: "admin.v1.AccessService/SetAccessMode", body: `{"mode": "ACCESS_MODE_GUARDED"}`},
	{procedure: "v1.IdentityService/WhoAmI", body: `{}`},
	{
		procedure: "admin.v1.AccessService/CreateAccount",
		body:      `{"account": {"name": "hans", "groups": ["ci"]}, "reason": "a user"}`,
	},
	{procedure: "admin.v1.AccessService/CreateAccount", body: `{"account": {"name": "anna"}}`},
	{
		procedure: "admin.v1.AccessService/UpdateAccount",
		body:      `{"name": "hans", "description": "of the grid", "groups": {"names": ["ci"]}, "disabled": false}`,
	},
	{procedure: "admin.v1.AccessService/ListAccounts", body: `{"pageSize": 1}`},
	{
		procedure: "admin.v1.AccessService/CreateToken", body: `{"account": "hans", "lifeMs": 3600000}`,
		keep: []string{"hans=secret", "hansID=token.id"},
	},
	{
		procedure: "admin.v1.AccessService/CreateToken", body: `{"account": "anna", "lifeMs": "3600000", "verbs": ["usage.read"]}`,
		keep: []string{"annaID=token.id"},
	},
	{
		procedure: "admin.v1.AccessService/RotateToken", keep: []string{"hans=secret"},
		body: `{"id": "{{hansID}}", "overlapMs": 60000}`,
	},
	{procedure: "admin.v1.AccessService/ListTokens", body: `{"account": "hans"}`},
	{procedure: "admin.v1.AccessService/RevokeToken", body: `{"id": "{{annaID}}", "reason": "lost"}`},
	{
		procedure: "admin.v1.AccessService/RefuseCredential",
		body: `{"refused": {"kind": "REFUSED_KIND_USER", "name": "account/anna",
			"endsAt": "2030-01-01T00:00:00Z", "reason": "left"}}`,
	},
	{procedure: "admin.v1.AccessService/ListRefusedCredentials", body: `{}`},
	{procedure: "admin.v1.AccessService/AllowCredential", body: `{"kind": "REFUSED_KIND_USER", "name": "account/anna"}`},
	{procedure: "admin.v1.AccessService/DeleteAccount", body: `{"name": "anna"}`},
	{procedure: "v1.IdentityService/CanI", body: `{"questions": [{"verb": "hold", "tree": "cern"}]}`},
	{procedure: "admin.v1.AccessService/WhoCan", body: `{"verb": "access.manage"}`},
	{procedure: "admin.v1.AuditService/ListRecords", body: `{"newestFirst": true}`},
	{procedure: "admin.v1.AuditService/ListRecords", body: `{"source": "AUDIT_SOURCE_SERVER"}`},
}

// treeCalls configure trees.
var treeCalls = []call{
	{procedure: "v1.TreeService/ApplyTrees", body: `{"dryRun": true, ` + cernTree + `}`},
	{procedure: "v1.TreeService/ApplyTrees", body: `{"reason": "the beginning", ` + cernTree + `}`},
	{procedure: "v1.TreeService/GetTree", body: `{"name": "cern"}`},
	{
		procedure: "v1.TreeService/ListTrees",
		body:      `{"countRequests": true, "read": {"consistency": "CONSISTENCY_STALE"}}`,
	},
	{
		procedure: "v1.TreeService/SetLimits",
		body:      `{"tree": "cern", "node": "atlas/physics", "limits": {"cores": {"amount": 30}}, "expectedRevision": "1"}`,
	},
	{
		procedure: "v1.TreeService/SetLimits", status: 400,
		body: `{"tree": "cern", "node": "cms", "limits": {"cores": {"unlimited": true}}}`,
	},
	{procedure: "v1.TreeService/MoveNode", body: `{"tree": "cern", "node": "cms/old", "newNode": "atlas/old"}`},
	{procedure: "admin.v1.ConfigurationService/RollBack", body: `{"revision": 1}`},
	{
		procedure: "admin.v1.CordonService/CordonNode",
		body:      `{"tree": "cern", "node": "cms", "reason": "repairs", "forMs": 3600000}`,
	},
	{procedure: "admin.v1.CordonService/ListCordons", body: `{"tree": "cern"}`},
	{procedure: "admin.v1.CordonService/UncordonNode", body: `{"tree": "cern", "node": "cms"}`},
	{procedure: "admin.v1.ConfigurationService/GetConfiguration", body: `{"manifest": true}`},
	{procedure: "admin.v1.ConfigurationService/GetConfiguration", body: `{"tree": "cern", "node": "atlas"}`},
	{
		procedure: "admin.v1.ConfigurationService/ParseManifest",
		body:      `{"text": "trees: {other: {policy: open, resources: {gpus: {unit: count}}, limits: {gpus: 4}}}"}`,
	},
	{procedure: "admin.v1.ConfigurationService/ParseManifest", body: `{"text": "tree: {}"}`},
	{
		procedure: "v1.TreeService/ScheduleLimits",
		body: `{"id": "night", "tree": "cern", "node": "atlas", "adjustments": {"cores": {"cap": 50}},
			"beginsAt": "2090-01-01T00:00:00Z", "endsAt": "2090-02-01T00:00:00Z", "reason": "maintenance"}`,
	},
	{procedure: "v1.TreeService/ListScheduledLimits", body: `{}`},
	{procedure: "v1.TreeService/CancelScheduledLimit", body: `{"id": "night"}`},
	{procedure: "admin.v1.ConfigurationService/ListRevisions", body: `{"pageSize": 2}`},
	{procedure: "v1.TreeService/ApplyTrees", body: `{"trees": [{"name": "scratch", "policy": "open",
			"resources": [{"name": "gpus", "unit": "UNIT_MILLI"}]}]}`},
	{procedure: "v1.TreeService/DeleteTree", body: `{"name": "scratch", "reason": "done"}`},
}

// cernTree is a tree with a resource in counts and items.
const cernTree = `"trees": [{"name": "cern", "policy": "strict", "labels": {"site": "meyrin"},
	"resources": [{"name": "cores", "unit": "UNIT_COUNT"}, {"name": "memory", "unit": "UNIT_BYTES"},
		{"name": "node", "unit": "UNIT_ITEMS", "items": {"names": ["a", "b"], "state": "free", "released": "dirty",
			"expired": "dirty"}}],
	"limits": {"cores": {"amount": "100"}, "memory": {"unlimited": true}, "node": {"unlimited": true}},
	"leases": {"maxTtlMs": "86400000"}, "thresholds": {"percents": [80]},
	"nodes": [{"path": "atlas", "limits": {"cores": {"amount": 60}, "node": {"unlimited": true}},
			"bindings": [{"role": "node-admin", "subjects": [{"kind": "SUBJECT_KIND_ACCOUNT", "name": "admin"}]}]},
		{"path": "atlas/physics", "limits": {"cores": {"amount": 40}, "node": {"unlimited": true}},
			"principals": [{"users": ["hans"], "limits": {"cores": {"amount": 20}}}],
			"bindings": [{"role": "holder", "subjects": [{"kind": "SUBJECT_KIND_ACCOUNT", "name": "hans"}]}]},
		{"path": "cms", "limits": {"cores": {"amount": 40}}}, {"path": "cms/old", "limits": {"cores": {"amount": 0}}}]}]`
