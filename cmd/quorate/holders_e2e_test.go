package main_test

import "testing"

func TestPreemptionOverTheRealThing(t *testing.T) {
	t.Parallel()
	f := alone(t)
	serve(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/borrowing.yaml", 0, ""},
		{"allocate --id low --priority 1 --at ContextTree:Org-A/Context-1 --amount cpu=10", 0, "counted at ContextTree"},
		{"allocate --id high --priority 5 --at ContextTree:Org-A/Context-2 --amount cpu=8 --dry-run", 0, "would preempt low"},
		{"allocation low", 0, "held"},
		{"allocate --id high --priority 5 --reserve 1h --at ContextTree:Org-A/Context-2 --amount cpu=8", 0, "preempted low"},
		{"allocation low", 0, "preempted by high"},
		{"events --kind preempted", 0, "low"},
		{"allocate --id safe --priority 1 --unpreemptable --at ContextTree:Org-B/Context-3 --amount cpu=2", 0, "unpreemptable"},
	})
}
