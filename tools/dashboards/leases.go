package main

// leasesBoard shows leases and items.
var leasesBoard = board{
	title: "Quorate / Leases and items", hasTrees: true,
	about: "Leases, their renewals and ends, and the states of items of Quorate clusters.",
	rows:  []row{leasesRow, itemsRow},
}

var leasesRow = row{"Leases", []panel{
	{
		kind: stat, title: "Leases", about: "Held allocations that end unless they are renewed.", unit: "short",
		queries: one(`max by (cluster) (quorate_leases{$})`, byCluster),
	},
	{
		kind: stat, title: "Expired in an hour", unit: "short", steps: warn(1, 100),
		about: "Leases whose holder did not renew them in time: it crashed, hangs, or cannot reach a server.",
		queries: one(`sum by (cluster) (max by (cluster, tree) (increase(quorate_ends_total{$T, outcome="expired"}[1h])))`,
			byCluster),
	},
	{
		kind: stat, title: "Revoked in an hour", unit: "short",
		about:   "Leases that were revoked: their holders are told to give them back.",
		queries: one(`max by (cluster) (increase(quorate_revocations_total{$}[1h]))`, byCluster),
	},
	{
		kind: graph, title: "Leases over time", about: "Leases, and all held allocations.", unit: "short",
		queries: []query{
			{`max by (cluster) (quorate_leases{$})`, "{{cluster}} leases"},
			{`max by (cluster) (quorate_held_allocations{$})`, "{{cluster}} allocations"},
		},
	},
	{
		kind: graph, title: "Ends", about: "By outcome, of the chosen trees.", unit: "ops",
		queries: one(maxRate("cluster, tree, outcome", `quorate_ends_total{$T}`), byTree+" {{outcome}}"),
	},
	{
		kind: graph, title: "Revocations", about: "Leases that were revoked.", unit: "ops",
		queries: one(maxRate("cluster", `quorate_revocations_total{$}`), byCluster),
	},
	{
		kind: graph, title: "Duration of leases", unit: "s",
		about: "From the grant to the end, renewals included. Empty while none ends.",
		queries: quantiles(maxRate("cluster, tree, le", `quorate_lease_duration_seconds_bucket{$T}`),
			byTree, 0.5, 0.95),
	},
	{
		kind: graph, title: "Renewals", about: "Calls that renew, each for many leases.", unit: "reqps",
		queries: one(sumRate("cluster, outcome", `quorate_rpc_calls_total{$, procedure=~".*/Renew.*"}`),
			"{{cluster}} {{outcome}}"),
	},
	{
		kind: graph, title: "Watchers", about: "Holders that follow their leases, and others that watch.", unit: "short",
		queries: one(`sum by (cluster, procedure) (quorate_rpc_open{$, procedure=~".*/Watch.*"})`,
			"{{cluster}} {{procedure}}"),
	},
}}

const byResource = "{{cluster}} {{tree}} {{resource}}"

var itemsRow = row{"Items", []panel{
	{
		kind: bars, title: "Items in use", unit: "percentunit", steps: warn(0.9, 1),
		about: "Share of the items of a resource that are not free.",
		queries: one(`1 - max by (cluster, tree, resource) (quorate_items{$T, state="free"})`+
			` / sum by (cluster, tree, resource) (max by (cluster, tree, resource, state) (quorate_items{$T}))`, byResource),
	},
	{
		kind: table, title: "Items by state", about: "Of all resources of the chosen trees.", unit: "short",
		queries: one(`max by (cluster, tree, resource, state) (quorate_items{$T})`, ""),
	},
	{
		kind: graph, title: "Items over time", about: "By state.", unit: "short", stacked: true,
		queries: one(`max by (cluster, tree, resource, state) (quorate_items{$T})`, byResource+" {{state}}"),
	},
	{
		kind: graph, title: "Free items", about: "A pool that is empty while requests wait is too small.", unit: "short",
		queries: one(`max by (cluster, tree, resource) (quorate_items{$T, state="free"})`, byResource),
	},
	{
		kind: graph, title: "Waiting claims", about: "Of the trees, for items and amounts.", unit: "short",
		queries: one(`max by (cluster, tree) (quorate_waiting_claims{$T})`, byTree),
	},
}}
