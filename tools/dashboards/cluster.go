package main

const (
	byCluster  = "{{cluster}}"
	byInstance = "{{cluster}} {{instance}}"
)

// clusterBoard shows whether the cluster works: what every member is and does by itself.
var clusterBoard = board{
	title: "Quorate / Cluster",
	about: "Members, leadership, log, disks and calls of Quorate clusters.",
	rows:  []row{stateRow, membersRow, logRow, storageRow, callsRow, readsRow, processRow},
}

var stateRow = row{"State", []panel{
	{
		kind: stat, title: "Leader", about: "Whether a member leads. Without one nothing can be allocated or released.",
		queries: one(`max by (cluster) (quorate_leader{$})`, byCluster), steps: low(1, 1),
		words: map[string]string{"0": "none", "1": "yes"},
	},
	{
		kind: stat, title: "Ready members", about: "Members that know a leader and have caught up with it.",
		queries: one(`sum by (cluster) (quorate_ready{$})`, byCluster), unit: "short", steps: low(1, 2),
	},
	{
		kind: stat, title: "Voters alive", about: "Voters that answer gossip, as the member says that sees fewest.",
		queries: one(`min by (cluster) (quorate_voters_alive{$})`, byCluster), unit: "short", steps: low(1, 2),
	},
	{
		kind: stat, title: "Differing members", about: "Members whose state differs from that of a majority: 0 is well.",
		queries: one(`max by (cluster) (quorate_differing_members{$})`, byCluster), unit: "short", steps: alarm(1),
	},
	{
		kind: stat, title: "Certificates end in", unit: "s",
		about:   "The first end of a certificate of a member, or of an authority. Empty without certificates.",
		queries: one(`min by (cluster) (quorate_certificate_expiry_timestamp_seconds{$}) - time()`, byCluster),
		steps:   low(2*86400, 14*86400),
	},
	{
		kind: stat, title: "Last backup", unit: "s",
		about:   "Since a member last saved a periodic backup. Empty without backup-dir.",
		queries: one(`time() - max by (cluster) (quorate_backup_last_success_timestamp_seconds{$})`, byCluster),
		steps:   warn(7200, 86400),
	},
	{
		kind: table, title: "Versions", about: "Members by version and by the newest format of the log they support.",
		queries: one(`count by (cluster, version, go, level) (quorate_build_info{$})`, ""),
	},
	{
		kind: bars, title: "Full disks", unit: "percentunit", steps: alarm(1),
		about:   "1 for members with less free space than disk-reserve: as leader they refuse what grows the ledger.",
		queries: one(`max by (cluster, instance) (quorate_disk_low{$})`, byInstance),
	},
}}

var membersRow = row{"Members", []panel{
	{
		kind: graph, title: "Ready", about: "1 while a member serves linearizable reads.", unit: "short",
		queries: one(`max by (cluster, instance) (quorate_ready{$})`, byInstance),
	},
	{
		kind: graph, title: "Leading member", about: "1 for the member that leads.", unit: "short",
		queries: one(`max by (cluster, instance) (quorate_leader{$})`, byInstance),
	},
	{
		kind: graph, title: "Changes of leader", about: "Leaderships that members established.", unit: "short",
		queries: one(sumIncrease("cluster", `quorate_leaderships_total{$}`), byCluster),
		steps:   warn(1, 3),
	},
	{
		kind: graph, title: "Unreachable", unit: "s", steps: alarm(30),
		about: "For how long a member has not reached another one.",
		queries: one(`max by (cluster, instance, peer) (quorate_member_unreachable_seconds{$})`,
			byInstance+" → {{peer}}"),
	},
	{
		kind: graph, title: "Since the leader was heard", about: "0 on the leader.", unit: "s", steps: alarm(10),
		queries: one(`max by (cluster, instance) (quorate_last_contact_seconds{$})`, byInstance),
	},
	{
		kind: graph, title: "Clocks ahead of civil time", about: "As the leader measures them.", unit: "s",
		queries: one(`max by (cluster, peer) (quorate_member_clock_offset_seconds{$})`, "{{cluster}} {{peer}}"),
		steps:   alarm(5),
	},
	{
		kind: graph, title: "Members by role", about: "By raft's configuration.", unit: "short",
		queries: one(`max by (cluster, role) (quorate_members{$})`, "{{cluster}} {{role}}"),
	},
	{
		kind: graph, title: "Gossip", about: "Other nodes that a member has heard of.", unit: "short",
		queries: one(`max by (cluster, instance, state) (quorate_gossip_peers{$})`, byInstance+" {{state}}"),
	},
	{
		kind: graph, title: "Term and feature level", unit: "short",
		about: "Terms change with leaders, levels with upgrades.",
		queries: []query{
			{`max by (cluster) (quorate_term{$})`, "{{cluster}} term"},
			{`max by (cluster) (quorate_feature_level{$})`, "{{cluster}} level"},
		},
	},
}}

var logRow = row{"Log", []panel{
	{
		kind: graph, title: "Commands", about: "Commands that are applied, as the fastest member says.", unit: "ops",
		queries: one(maxRate("cluster", `quorate_applied_commands_total{$}`), byCluster),
	},
	{
		kind: graph, title: "Entries", about: "Entries that leaders proposed, by outcome.", unit: "ops",
		queries: one(sumRate("cluster, outcome", `quorate_entries_total{$}`),
			"{{cluster}} {{outcome}}"),
	},
	{
		kind: graph, title: "Commands in an entry", about: "More commands share an entry when disks or network are slow.",
		unit: "short",
		queries: one(`sum by (cluster) (rate(quorate_entry_commands_sum{$}[$__rate_interval])) / `+
			sumRate("cluster", `quorate_entry_commands_count{$}`), byCluster),
	},
	{
		kind: graph, title: "Commit", unit: "s", steps: alarm(0.5),
		about:   "From handing an entry to raft until a majority had it: disks and network.",
		queries: quantiles(sumRate("cluster, le", `quorate_entry_commit_seconds_bucket{$}`), byCluster, 0.5, 0.99),
	},
	{
		kind: graph, title: "Wait for an entry", about: "Of the first command of an entry.", unit: "s",
		queries: quantiles(sumRate("cluster, le", `quorate_entry_queue_seconds_bucket{$}`), byCluster, 0.5, 0.99),
	},
	{
		kind: graph, title: "Apply", about: "To apply entries that arrived together.", unit: "s",
		queries: quantiles(sumRate("cluster, le", `quorate_apply_seconds_bucket{$}`), byCluster, 0.5, 0.99),
	},
	{
		kind: graph, title: "Entries behind", unit: "short", steps: alarm(10000),
		about: "Entries that a member has not applied yet, of those that are committed.",
		queries: one(`max by (cluster) (quorate_commit_index{$}) - on (cluster) group_right () `+
			`max by (cluster, instance) (quorate_applied_index{$})`, byInstance),
	},
	{
		kind: graph, title: "Queued commands", about: "Commands of the leader that wait for an entry.", unit: "short",
		queries: one(`max by (cluster) (quorate_queued_commands{$})`, byCluster), steps: alarm(4096),
	},
	{
		kind: graph, title: "Queued bytes", about: "Bytes of these commands.", unit: "bytes",
		queries: one(`max by (cluster) (quorate_queued_bytes{$})`, byCluster),
	},
	{
		kind: graph, title: "Bytes of an entry", about: "99 of 100 entries are not larger.", unit: "bytes",
		queries: quantiles(sumRate("cluster, le", `quorate_entry_bytes_bucket{$}`), byCluster, 0.99),
	},
	{
		kind: graph, title: "Length of the log", about: "Entries in the log of a member.", unit: "short",
		queries: one(`max by (cluster, instance) (quorate_log_last_index{$} - quorate_log_first_index{$})`, byInstance),
	},
}}

var storageRow = row{"Disks, snapshots and backups", []panel{
	{
		kind: graph, title: "Write to the log", about: "Average duration of a write in the last half minute.", unit: "s",
		queries: one(`max by (cluster, instance) (quorate_log_write_seconds{$})`, byInstance), steps: alarm(0.5),
	},
	{
		kind: graph, title: "Free space", about: "Bytes that are left for the data folder.", unit: "bytes",
		queries: one(`max by (cluster, instance) (quorate_disk_free_bytes{$})`, byInstance),
	},
	{
		kind: graph, title: "Entries since the snapshot", unit: "short",
		about:   "Several times snapshot-every means that snapshots fail.",
		queries: one(`max by (cluster, instance) (quorate_log_last_index{$} - quorate_snapshot_index{$})`, byInstance),
	},
	{
		kind: graph, title: "Size of the snapshot", about: "Of the newest one of a member.", unit: "bytes",
		queries: one(`max by (cluster, instance) (quorate_snapshot_bytes{$})`, byInstance),
	},
	{
		kind: graph, title: "Snapshots and restores", unit: "short",
		about: "Snapshots that were taken, and that replaced the ledger of a member, by outcome.",
		queries: []query{
			{sumIncrease("cluster, outcome", `quorate_snapshots_total{$}`), "{{cluster}} taken {{outcome}}"},
			{sumIncrease("cluster, outcome", `quorate_restores_total{$}`), "{{cluster}} restored {{outcome}}"},
		},
	},
	{
		kind: graph, title: "Average snapshot", unit: "s",
		about: "To write one beside the writers, and how long they waited. Empty while none is taken.",
		queries: []query{
			{`sum by (cluster) (rate(quorate_snapshot_write_seconds_sum{$}[$__rate_interval])) / ` +
				sumRate("cluster", `quorate_snapshot_write_seconds_count{$}`), "{{cluster}} write"},
			{`sum by (cluster) (rate(quorate_snapshot_freeze_seconds_sum{$}[$__rate_interval])) / ` +
				sumRate("cluster", `quorate_snapshot_freeze_seconds_count{$}`), "{{cluster}} freeze"},
		},
	},
	{
		kind: graph, title: "Entries since the backup", unit: "short",
		about: "What the newest periodic backup lacks. Empty without backup-dir.",
		queries: one(`max by (cluster) (quorate_applied_index{$}) - max by (cluster) (quorate_backup_last_index{$})`,
			byCluster),
	},
	{
		kind: graph, title: "Failed backups", about: "Empty without backup-dir.", unit: "short", steps: alarm(1),
		queries: one(sumIncrease("cluster, instance", `quorate_backup_failures_total{$}`), byInstance),
	},
}}

var callsRow = row{"Calls", []panel{
	{
		kind: graph, title: "Calls", about: "By procedure, of all members.", unit: "reqps", stacked: true,
		queries: one(`sum by (cluster, procedure) (rate(quorate_rpc_calls_total{$}[$__rate_interval])) > 0`,
			"{{cluster}} {{procedure}}"),
	},
	{
		kind: graph, title: "Calls that fail", about: "By outcome. Denials of quota are resource_exhausted.", unit: "reqps",
		queries: one(sumRate("cluster, outcome", `quorate_rpc_calls_total{$, outcome!="ok"}`),
			"{{cluster}} {{outcome}}"),
	},
	{
		kind: graph, title: "Duration of calls", unit: "s",
		about: "99 of 100 calls are not slower; calls that wait for a grant and streams are left out.",
		queries: quantiles(`sum by (cluster, procedure, le) (rate(quorate_rpc_duration_seconds_bucket{$, `+
			`procedure!~".*/(Watch.*|Allocate|AllocateStream)"}[$__rate_interval]))`, "{{cluster}} {{procedure}}", 0.99),
	},
	{
		kind: graph, title: "In progress", about: "Calls, streams and connections of clients, by member.", unit: "short",
		queries: []query{
			{`max by (cluster, instance) (quorate_rpc_calls_inside{$})`, byInstance + " calls"},
			{`max by (cluster, instance) (quorate_rpc_streams_inside{$})`, byInstance + " streams"},
			{`max by (cluster, instance) (quorate_rpc_connections_inside{$})`, byInstance + " connections"},
		},
	},
	{
		kind: graph, title: "Open calls and streams", about: "By procedure: those of Watch… are watchers.", unit: "short",
		queries: one(`sum by (cluster, procedure) (quorate_rpc_open{$}) > 0`, "{{cluster}} {{procedure}}"),
	},
	{
		kind: graph, title: "Refused for lack of capacity", about: "By limit and reason (docs/limits.md).", unit: "reqps",
		queries: one(sumRate("cluster, limit, reason", `quorate_rpc_shed_total{$}`),
			"{{cluster}} {{limit}} {{reason}}"),
	},
	{
		kind: graph, title: "Refused credentials", unit: "reqps",
		about: "Credentials that the cluster refuses, or would refuse, by reason. Empty until the first.",
		queries: one(sumRate("cluster, reason", `quorate_authentication_failures_total{$}`),
			"{{cluster}} {{reason}}"),
	},
	{
		kind: graph, title: "Would be refused", unit: "reqps",
		about: "What a guarded cluster would have refused, by verb; counted while the cluster is watching.",
		queries: one(sumRate("cluster, verb", `quorate_access_would_refuse_total{$}`),
			"{{cluster}} {{verb}}"),
	},
	{
		kind: graph, title: "Refused before they were read", about: "Web pages, hosts and certificates.", unit: "reqps",
		queries: []query{
			{sumRate("cluster, reason", `quorate_rpc_refused_total{$}`), "{{cluster}} {{reason}}"},
			{sumRate("cluster", `quorate_rpc_refused_headers_total{$}`), "{{cluster}} headers"},
		},
	},
	{
		kind: graph, title: "Bytes of requests", about: "In memory, unpacked, by member.", unit: "bytes",
		queries: one(`max by (cluster, instance) (quorate_rpc_body_bytes{$})`, byInstance),
	},
}}

var readsRow = row{"Forwarding and reads", []panel{
	{
		kind: graph, title: "Forwarded to the leader", about: "Calls, and attempts that failed.", unit: "reqps",
		queries: []query{
			{sumRate("cluster", `quorate_rpc_relayed_total{$}`), byCluster},
			{sumRate("cluster", `quorate_rpc_relayed_streamed_total{$}`), "{{cluster}} by a shared stream"},
			{sumRate("cluster, outcome", `quorate_rpc_relay_failures_total{$}`), "{{cluster}} {{outcome}}"},
			{`max by (cluster, instance) (quorate_rpc_relays_inside{$})`, byInstance + " in progress"},
		},
	},
	{
		kind: graph, title: "Linearizable reads", about: "And the questions on their behalf.", unit: "ops",
		queries: []query{
			{sumRate("cluster", `quorate_linearizable_reads_total{$}`), "{{cluster}} reads"},
			{sumRate("cluster, asker, outcome", `quorate_read_rounds_total{$}`), "{{cluster}} {{asker}} {{outcome}}"},
		},
	},
	{
		kind: graph, title: "Questions for reads", about: "99 of 100 are not slower.", unit: "s",
		queries: quantiles(sumRate("cluster, asker, le", `quorate_read_round_seconds_bucket{$}`),
			"{{cluster}} {{asker}}", 0.99),
	},
	{
		kind: graph, title: "Expensive reads", unit: "short",
		about: "Plans, dry runs, explanations and long lists: in progress, and those whose callers gave up.",
		queries: []query{
			{`sum by (cluster) (quorate_rpc_expensive_reads_inside{$})`, "{{cluster}} in progress"},
			{sumIncrease("cluster", `quorate_rpc_expensive_reads_dropped_total{$}`), "{{cluster}} dropped"},
		},
	},
	{
		kind: graph, title: "Time of expensive reads", about: "Share of the time, by member.", unit: "percentunit",
		queries: one(sumRate("cluster, instance", `quorate_rpc_expensive_reads_seconds_total{$}`), byInstance),
		steps:   alarm(0.25),
	},
}}

var processRow = row{"Processes", []panel{
	{
		kind: graph, title: "Processors", about: "Processors that a server uses.", unit: "short",
		queries: one(sumRate("cluster, instance", `process_cpu_seconds_total{$}`), byInstance),
	},
	{
		kind: graph, title: "Memory", about: "Resident memory of a server.", unit: "bytes",
		queries: one(`max by (cluster, instance) (process_resident_memory_bytes{$})`, byInstance),
	},
	{
		kind: graph, title: "Open files", about: "Files and connections of a server.", unit: "short",
		queries: one(`max by (cluster, instance) (process_open_fds{$})`, byInstance),
	},
	{
		kind: graph, title: "Goroutines", about: "A number that only grows is a fault.", unit: "short",
		queries: one(`max by (cluster, instance) (go_goroutines{$})`, byInstance),
	},
}}
