package main_test

import "testing"

func TestPreemptionOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/borrowing.yaml", 0, ""},
		{
			"allocate --id low --priority 1 --at ContextTree:Org-A/Context-1 --amount cpu=10", 0,
			"counted at ContextTree",
		},
		{
			"allocate --id high --priority 5 --at ContextTree:Org-A/Context-2 --amount cpu=8 --dry-run", 0,
			"would preempt low",
		},
		{"allocation show low", 0, "held"},
		{
			"allocate --id high --priority 5 --reserve 1h --at ContextTree:Org-A/Context-2 --amount cpu=8", 0,
			"preempted low",
		},
		{"allocation show low", 0, "preempted by high"},
		{"event list --kind preempted", 0, "low"},
		{"release high --restore", 0, "held again, as before the reservation: low"},
		{"allocation show low", 0, "held"},
		{"event list --kind restored", 0, "low"},
		{
			"allocate --id safe --priority 1 --unpreemptable --at ContextTree:Org-B/Context-3 --amount cpu=2", 0,
			"unpreemptable",
		},
	})
}

func TestPrincipalsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	const sue = " --user sue --group dev --at queues:ci/build --amount vcore=5"
	playSteps(t, f, []step{
		{"apply -f ../../examples/principals.yaml --actor ann", 0, ""},
		{"allocate --id one --application run-1" + sue, 0, "counted for group dev"},
		{
			"allocate --id two --application run-2" + sue, 3,
			"queues:ci/build  user sue, vcore: limit 8, used 5, requested 5, missing 2",
		},
		{"explain two", 0, "quorate limit set queues:ci/build vcore=10 --user=sue"},
		{"allocate --id waits --wait 1h --async --application run-2" + sue, 9, "position 1"},
		{"explain waits", 0, "by one: 5 at queues:ci/build, user sue, application run-1, since "},
		{"queue list --blockers", 0, "held by one: 5 at queues:ci/build, user sue, application run-1, since "},
		{"queue list --owner nobody", 0, "no request is waiting"},
		{"release waits --restore", 0, "cancelled"},
		{"allocate --id two --application run-2 --user zoe --at queues:ci/build --amount vcore=5", 0, "granted"},
		{"principal list queues", 0, "run-1"},
		{"principal list queues sue", 0, "queues:ci/build"},
		{"principal list queues --groups", 0, "dev"},
		{"principal list queues --groups -o json", 0, `"sue"`},
		{"principal list bern", 1, "bern"},
		{"usage queues", 0, "applications"},
		{"release one", 0, "released"},
		{"allocate --id two-again --application run-2" + sue, 0, "granted"},
		{"allocate --id three --force --application run-3" + sue, 0, "held by force"},
	})
}

func TestCohortsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	const file = "../../examples/cohort.yaml"
	playSteps(t, f, []step{
		{"apply -f " + file, 0, "(revision 1)"},
		{"allocate --id loan --at gpus:speech --amount gpu=8", 0, "granted"},
		{"allocate --id more --at gpus:speech --amount gpu=1", 3, "gpus:speech  borrowed gpu: limit 4"},
		{"explain more", 0, "# gpus:speech  borrowed gpu: 4 -> 5"},
		{"allocate --id rest --at gpus:robots/arms --amount gpu=7", 3, "missing 1"},
		{"allocate --id rest --at gpus:robots/arms --amount gpu=6", 0, "granted"},
		{"allocate --id own --at gpus:vision --amount gpu=3", 3, "gpus"},
		{"release loan", 0, "released"},
		{"allocate --id own --at gpus:vision --amount gpu=3", 0, "granted"},
		{"plan -f " + file, 0, "nothing to change"},
	})
}
