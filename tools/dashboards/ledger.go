package main

const byTree = "{{cluster}} {{tree}}"

// ledgerBoard shows what the ledger has. All members report the same: each query takes the maximum over members.
var ledgerBoard = board{
	title: "Quorate / Ledger", hasTrees: true,
	about: "Allocations, waiting requests, chosen nodes and webhooks of Quorate clusters.",
	rows:  []row{totalsRow, treesRow, nodesRow, recordsRow},
}

var totalsRow = row{"Totals", []panel{
	{
		kind: stat, title: "Held allocations", about: "Allocations that are held.", unit: "short",
		queries: one(`max by (cluster) (quorate_held_allocations{$})`, byCluster),
	},
	{
		kind: stat, title: "Waiting requests", about: "Requests in the queue.", unit: "short",
		queries: one(`max by (cluster) (quorate_waiting_requests{$})`, byCluster),
	},
	{
		kind: stat, title: "Memory of the bound", unit: "percentunit", steps: warn(0.75, 0.9),
		about: "What allocations, waiting requests, items and trees take, of what they may take together.",
		queries: one(`sum by (cluster) (max by (cluster, part) `+
			`(quorate_ledger_bytes{$, part=~"allocations|waiting|items|trees"})) / max by (cluster) (quorate_ledger_limit_bytes{$})`, byCluster),
	},
	{
		kind: stat, title: "Nodes left out", about: "Chosen nodes that metrics-nodes names and the bounds leave out.",
		queries: one(`max by (cluster) (quorate_nodes_left_out{$})`, byCluster), unit: "short", steps: warn(1, 1000),
	},
	{
		kind: stat, title: "Dead webhooks", about: "Webhooks to which nothing is delivered until they are resumed.",
		queries: one(`sum by (cluster) (max by (cluster, webhook) (quorate_webhook_dead{$}))`, byCluster), unit: "short",
		steps: alarm(1),
	},
	{
		kind: stat, title: "Recorded series", unit: "short", steps: warn(5000, 5500),
		about:   "Nodes and itemized resources with a record of the last 24 hours, at most 5,500.",
		queries: one(`max by (cluster) (quorate_activity_series{$})`, byCluster),
	},
}}

var treesRow = row{"Trees", []panel{
	{
		kind: graph, title: "Held claims", about: "By tree.", unit: "short",
		queries: one(`max by (cluster, tree) (quorate_held_claims{$T})`, byTree),
	},
	{
		kind: graph, title: "Waiting claims", about: "By tree.", unit: "short",
		queries: one(`max by (cluster, tree) (quorate_waiting_claims{$T})`, byTree),
	},
	{
		kind: graph, title: "Grants", about: "At once or from the queue.", unit: "ops",
		queries: one(maxRate("cluster, tree, from", `quorate_grants_total{$T}`), byTree+" {{from}}"),
	},
	{
		kind: graph, title: "Ends", unit: "ops",
		about:   "Releases and other ends. Expired leases are those of holders that crashed or hang.",
		queries: one(maxRate("cluster, tree, outcome", `quorate_ends_total{$T}`), byTree+" {{outcome}}"),
	},
	{
		kind: graph, title: "Wait in the queue", unit: "s",
		about: "Of requests that were granted from it. Empty while none is.",
		queries: quantiles(maxRate("cluster, tree, le", `quorate_wait_duration_seconds_bucket{$T}`),
			byTree, 0.5, 0.95),
	},
	{
		kind: graph, title: "Denials", about: "Requests that were denied, by reason, also in batches.", unit: "reqps",
		queries: one(sumRate("cluster, tree, reason", `quorate_denials_total{$T}`), byTree+" {{reason}}"),
	},
}}

const byNode = "{{cluster}} {{tree}}:{{node}} {{resource}}"

var nodesRow = row{"Chosen nodes (metrics-nodes)", []panel{
	{
		kind: bars, title: "Use of limits", unit: "percentunit", steps: warn(0.8, 1),
		about: "What is held at the node and below it, of its limit. Empty without metrics-nodes.",
		queries: one(`max by (cluster, tree, node, resource) (quorate_node_used{$T}) / `+
			`max by (cluster, tree, node, resource) (quorate_node_limit{$T})`, byNode),
	},
	{
		kind: bars, title: "Use of advisory limits", unit: "percentunit", steps: warn(0.8, 1),
		about: "The same of limits that admission does not apply. Empty without such nodes.",
		queries: one(`max by (cluster, tree, node, resource) (quorate_node_used{$T}) / `+
			`max by (cluster, tree, node, resource) (quorate_node_advisory_limit{$T})`, byNode),
	},
	{
		kind: graph, title: "Used", about: "In base units, at the node and below it.", unit: "short",
		queries: one(`max by (cluster, tree, node, resource) (quorate_node_used{$T})`, byNode),
	},
	{
		kind: graph, title: "Headroom", about: "What a claim at the node could get now.", unit: "short",
		queries: one(`max by (cluster, tree, node, resource) (quorate_node_headroom{$T})`, byNode),
	},
	{
		kind: graph, title: "Waiting", about: "What waiting requests ask for at the node and below it.", unit: "short",
		queries: one(`max by (cluster, tree, node, resource) (quorate_node_waiting{$T})`, byNode),
	},
}}

var recordsRow = row{"Memory, records and webhooks", []panel{
	{
		kind: graph, title: "Memory of the ledger", about: "By the estimate of the ledger.", unit: "bytes", stacked: true,
		queries: one(`max by (cluster, part) (quorate_ledger_bytes{$})`, "{{cluster}} {{part}}"),
	},
	{
		kind: graph, title: "Gaps in the record", unit: "short",
		about:   "A member received a snapshot instead of the log, or was too slow.",
		queries: one(sumIncrease("cluster, instance", `quorate_activity_gaps_total{$}`), byInstance),
	},
	{
		kind: graph, title: "Deliveries", about: "Attempts to deliver an event. Empty without webhooks.", unit: "ops",
		queries: one(sumRate("cluster, webhook, outcome", `quorate_webhook_attempts_total{$}`),
			"{{cluster}} {{webhook}} {{outcome}}"),
	},
	{
		kind: graph, title: "Events behind", about: "To be delivered or skipped. Empty without webhooks.", unit: "short",
		queries: one(`max by (cluster, webhook) (quorate_webhook_behind_events{$})`, "{{cluster}} {{webhook}}"),
	},
}}
