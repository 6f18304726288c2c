package main_test

// A matrixCall is a row of the matrix for each of its places.
type matrixCall struct {
	method string
	places string // that PLACE and TREE stand for
	body   string
}

// matrixCalls have a request for each method and each place that it may concern: the node where the roles are bound
// (a), one below it, the root above it, its sibling, and another tree. What changes something is a dry run where there
// is one, and else changes what no other call depends on. WHO is a text for each column and run, NEW one for each call.
var matrixCalls = []matrixCall{
	{"AccessService/AllowCredential", "", `{"kind": "REFUSED_KIND_JTI", "issuer": "x", "name": "WHO"}`},
	{"AccessService/CanI", "", `{"questions": [{"verb": "hold", "place": {"tree": "t"}}]}`},
	{"AccessService/CreateAccount", "", `{"account": {"name": "dummy"}}`},
	{"AccessService/CreateToken", "", `{"account": "nobody"}`},
	{"AccessService/DeleteAccount", "", `{"name": "nobody"}`},
	{"AccessService/ListAccounts", "", `{}`},
	{"AccessService/ListRefusedCredentials", "", `{}`},
	{"AccessService/ListTokens", "", `{"account": "dummy"}`},
	{"AccessService/RefuseCredential", "", `{"refused": {"kind": "REFUSED_KIND_JTI", "issuer": "nobody", "name": "x"}}`},
	{"AccessService/RevokeToken", "", `{"id": "aaaaaaaaaaaaa"}`},
	{"AccessService/RotateToken", "", `{"id": "aaaaaaaaaaaaa"}`},
	{"AccessService/SetAccessMode", "", `{"mode": "ACCESS_MODE_OPEN"}`},
	{"AccessService/UpdateAccount", "", `{"account": {"name": "dummy"}}`},
	{"AccessService/WhoAmI", "", `{}`},
	{"AccessService/WhoCan", "a b root s other", `{"verb": "hold", "place": {PLACE}}`},
	{
		"AllocationService/Allocate", "a b root s other",
		`{"id": "NEW", "mode": "MODE_DRY_RUN", "claims": [{PLACE, "amounts": {"cores": 1}}]}`,
	},
	{
		"AllocationService/Allocate (granted)", "a b root s other",
		`{"id": "NEW", "claims": [{PLACE, "amounts": {"cores": 1}}]}`,
	},
	{"AllocationService/Allocate (forced)", "b", `{"id": "NEW", "mode": "MODE_FORCE", "claims": [{PLACE, "amounts": {"cores": 1}}]}`},
	{"AllocationService/Allocate (for another user)", "b", `{"id": "NEW", "mode": "MODE_DRY_RUN",
		"principal": {"user": "ann"}, "claims": [{PLACE, "amounts": {"cores": 1}}]}`},
	{
		"AllocationService/AllocateStream", "a b root s other",
		`{"number": "1", "allocate": {"id": "NEW", "claims": [{PLACE, "amounts": {"cores": 1}}]}}`,
	},
	{
		"AllocationService/BatchAllocate", "b root",
		`{"requests": [{"id": "NEW", "mode": "MODE_DRY_RUN", "claims": [{PLACE, "amounts": {"cores": 1}}]}]}`,
	},
	{"ActivityService/GetActivity", "a b root s other", `{PLACE}`},
	{"AllocationService/BatchRelease", "", `{"ids": ["batch-WHO"]}`},
	{"AllocationService/BatchRenew", "", `{"renewals": [{"id": "lease-WHO", "ttlMs": 60000}]}`},
	{"AllocationService/Cancel", "", `{"id": "cancelled-WHO"}`},
	{"AllocationService/Confirm", "", `{"id": "confirmed-WHO"}`},
	{"AllocationService/Explain", "a b root s other", `{"request": {"id": "NEW", "claims": [{PLACE, "amounts": {"cores": 1}}]}}`},
	{"AllocationService/Explain (of an id)", "", `{"id": "kept-WHO"}`},
	{"AllocationService/GetAllocation", "", `{"id": "kept-WHO"}`},
	{"AllocationService/ListAllocations", "a b root s other", `{PLACE}`},
	{"AllocationService/ListEvents", "", `{}`},
	{"AllocationService/ListWaiting", "a b root s other", `{PLACE}`},
	{"AllocationService/Release", "", `{"id": "released-WHO"}`},
	{"AllocationService/Renew", "", `{"id": "lease-WHO", "ttlMs": 60000}`},
	{"AllocationService/WatchAllocations", "a b root s other", `{PLACE, "afterIndex": "SINCE"}`},
	{"ClusterService/Checkpoint", "", `{}`},
	{"ClusterService/DemoteMember", "", `{"id": "n9"}`},
	{"ClusterService/GetDigests", "", `{}`},
	{"ClusterService/GetLevel", "", `{}`},
	{"ClusterService/GetStatus", "", `{}`},
	{"ClusterService/JoinMember", "", `{"id": "n9"}`},
	{"ClusterService/ListMembers", "", `{}`},
	{"ClusterService/PromoteMember", "", `{"id": "n9"}`},
	{"ClusterService/RaiseLevel", "", `{}`},
	{"ClusterService/RemoveMember", "", `{"id": "n9"}`},
	{"ClusterService/TransferLeader", "", `{"id": "n9"}`},
	{"AuditService/ListRecords", "", `{}`},
	{"DebugService/GetDiagnostics", "", `{}`},
	{"ItemService/CountItems", "", `{"tree": "t"}`},
	{"ItemService/ListItems", "", `{"tree": "t"}`},
	{"ItemService/ListItems (with user data)", "", `{"tree": "t", "userData": true}`},
	{"ItemService/ResetItems", "", `{"tree": "t", "resource": "machine", "state": "dirty", "to": "free"}`},
	{
		"ItemService/UpdateItems", "",
		`{"updates": [{"item": {"tree": "t", "resource": "machine", "name": "m1"}, "state": "free"}]}`,
	},
	{"SnapshotService/Restore", "", `{"confirmation": {"clusterName": "wrong", "size": 1}}`},
	{"SnapshotService/Save", "", `{}`},
	{"TreeService/ApplyTrees", "", `{"trees": [{"name": "new", "resources": [{"name": "cores"}]}], "dryRun": true}`},
	{"TreeService/DeleteTree", "", `{"name": "other", "dryRun": true}`},
	{"TreeService/GetConfiguration", "", `{}`},
	{"TreeService/GetTree", "root other", `{"name": TREE}`},
	{"TreeService/GetUsage", "a b root s other", `{PLACE}`},
	{"TreeService/ListPrincipals", "root other", `{"tree": TREE, "kind": "HOLDER_KIND_USER"}`},
	{"TreeService/ListRevisions", "", `{}`},
	{"TreeService/ListTrees", "", `{}`},
	{"TreeService/MoveNode", "", `{"tree": "t", "from": "a/c", "to": "a/b/c", "dryRun": true}`},
	{"TreeService/MoveNode (out of a)", "", `{"tree": "t", "from": "a/c", "to": "s/c", "dryRun": true}`},
	{"TreeService/RollBack", "", `{"revision": "1", "dryRun": true}`},
	{"TreeService/SetLimits", "a b root s other", `{PLACE, "limits": {"cores": {"amount": "10"}}, "dryRun": true}`},
	{"TreeService/SetMaintenance", "root other", `{"tree": TREE, "on": true, "dryRun": true}`},
}
