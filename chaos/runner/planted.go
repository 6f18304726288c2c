package runner

import "time"

// Bug is a bug that a server built with the tag planted can have, and what brings it to light soonest.
type Bug struct {
	Name string
	// Faults and Workloads are those of the runs that look for it; nil is all of them.
	Faults, Workloads []string
	Length            time.Duration
}

// Planted are all planted bugs. Each is a hook in the server that asks quota.Planted.
var Planted = []Bug{
	{Name: "early-acknowledge", Faults: []string{"isolate-leader", "split"}, Length: 40 * time.Second},
	{Name: "stale-read", Faults: []string{"pause-leader"}, Workloads: []string{"deep", "pair", "read"}, Length: 60 * time.Second},
	{Name: "wall-clock", Faults: []string{"clock-leader"}, Length: 30 * time.Second},
	{Name: "forget-ids", Faults: []string{"kill-all", "kill-leader"}, Workloads: []string{"read", "retry", "watch"}, Length: 40 * time.Second},
	{
		Name: "double-grant", Faults: []string{"kill-all", "lagging-follower"}, Workloads: []string{"items", "boskos", "read", "watch"},
		Length: 40 * time.Second,
	},
	{Name: "skip-command", Faults: []string{"kill-leader"}, Length: 20 * time.Second},
	{Name: "map-order", Faults: []string{"kill-leader"}, Length: 20 * time.Second},
	{Name: "one-too-many", Faults: []string{"pause-follower"}, Length: 15 * time.Second},
	{Name: "early-expiry", Faults: []string{"pause-follower"}, Length: 20 * time.Second},
	{Name: "queue-jump", Faults: []string{"pause-follower"}, Length: 20 * time.Second},
}
