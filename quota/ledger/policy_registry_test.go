package ledger_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/policy"
)

// TestAddAPolicy adds one as CONTRIBUTING.md says, and asks it: claims at leaves only, and at most half of what a node
// may hold for each child.
func TestAddAPolicy(t *testing.T) {
	t.Cleanup(ledger.Register(policy.Policy{
		Name: "halves", Unset: quota.AtMost(3), LeavesOnly: true, UnknownNodes: policy.CountAtAncestor,
		FamilyRule: atMostHalfEach,
	}))
	want := strings.TrimSpace(`
apply
  tree t policy=halves resources=r r=10
  node a r=6
apply
  tree t policy=halves resources=r r=10
  node a r=5
  node b
allocate i t r=1
allocate i t:c r=1
allocate i t:a/x r=6
allocate i t:a/x r=5
allocate j t:b r=4
allocate f t r=1 @force
set t:a r=7
dry apply
  tree t policy=open resources=r r=10
  node a r=9
  node b
----
refused POLICY_BREACH: policy halves of t forbids it for r: its child a has more than half
revision 1
  added t tree: t
  added t resource r: count
  added t policy: halves
  added t limit r: 10
  added t:a node: a
  added t:a limit r: 5
  added t:b node: b
refused INVALID: claims[0].node: t has nodes below it, and policy halves admits claims at leaves only; claim at one of them, for example t:a
refused INVALID: claims[0].node: t has nodes below it, and policy halves admits claims at leaves only; claim at one of them, for example t:a
denied: t:a holds 0 of 5 r, 6 requested, 1 missing (more than the whole limit: it cannot fit until that is raised)
granted, fence 1
  t:a/x is counted at t:a
denied: t:b holds 0 of 3 r, 4 requested, 1 missing (more than the whole limit: it cannot fit until that is raised)
granted, fence 2
refused POLICY_BREACH: policy halves of t forbids it for r: its child a has more than half
revision 1
  changed t policy: halves to open
  changed t:a limit r: 5 to 9
  room at t:a for r: 0 to 4
  would admit j
`)
	for _, freezeAlways := range []bool{false, true} {
		if got := strings.TrimSpace(play(t, want, freezeAlways)); got != want {
			t.Errorf("frozen always: %v\ngot:\n%s\nwant:\n%s", freezeAlways, got, want)
		}
	}
}

// atMostHalfEach is a rule that the other choices cannot express.
func atMostHalfEach(f policy.Family) string {
	for _, c := range f.Children {
		if 2*c.Limit.Amount > f.Limit.Amount {
			return "its child " + c.Name + " has more than half"
		}
	}
	return ""
}

// TestContradictions: switches that cannot be together are a mistake of the code, and stop the program at once.
func TestContradictions(t *testing.T) {
	sound := policy.Policy{Name: "sound", Unset: quota.NoLimit()}
	ledger.Register(sound)()
	const closed = "a choice is outside of its closed list"
	for _, c := range []struct {
		want  string
		spoil func(s *policy.Policy)
	}{
		{"policy : it needs a name like those of nodes", func(s *policy.Policy) { s.Name = "" }},
		{"policy a b: it needs a name like those of nodes", func(s *policy.Policy) { s.Name = "a b" }},
		{"Unset must say what an unset limit means", func(s *policy.Policy) { s.Unset = quota.Limit{} }},
		{closed, func(s *policy.Policy) { s.Sum = 3 }},
		{closed, func(s *policy.Policy) { s.UnknownNodes = 3 }},
		{closed, func(s *policy.Policy) { s.Borrowing = 3 }},
		{closed, func(s *policy.Policy) { s.Preemption = 4 }},
		{
			"preemption: lower-priority excludes borrowing: none, because",
			func(s *policy.Policy) { s.Preemption = policy.PreemptLower },
		},
		{"preemption: borrowers excludes borrowing: bounded, because", func(s *policy.Policy) {
			s.Preemption, s.Borrowing = policy.PreemptBorrowers, policy.BorrowBounded
		}},
		{"unknown-nodes: create excludes sum: within-limit, because", func(s *policy.Policy) {
			s.UnknownNodes, s.Sum = policy.CreateUnknown, policy.SumWithinLimit
		}},
		{
			"unknown-nodes: create excludes claim-nodes: leaves, because",
			func(s *policy.Policy) { s.UnknownNodes, s.LeavesOnly = policy.CreateUnknown, true },
		},
		{
			"unknown-nodes: create excludes borrowing: soft, because",
			func(s *policy.Policy) { s.UnknownNodes, s.Borrowing = policy.CreateUnknown, policy.BorrowSoft },
		},
		{
			"unknown-nodes: create excludes borrowing: bounded, because",
			func(s *policy.Policy) { s.UnknownNodes, s.Borrowing = policy.CreateUnknown, policy.BorrowBounded },
		},
	} {
		s := sound
		c.spoil(&s)
		if got := panicOf(func() { ledger.Register(s)() }); !strings.Contains(got, c.want) {
			t.Errorf("%+v: panics with %q, want %q", s, got, c.want)
		}
	}
	if got := panicOf(func() { ledger.Register(sound, sound)() }); got != "two policies are named sound" {
		t.Errorf("two of one name: panics with %q", got)
	}
}

func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// TestPolicyTextsHaveUnits: a refusal by a policy writes amounts in the unit of the resource.
func TestPolicyTextsHaveUnits(t *testing.T) {
	memory := func(amount quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "memory", Limit: quota.AtMost(amount)}}
	}
	spec := quota.TreeSpec{
		Name: "s", Resources: []quota.Resource{{Name: "memory", Unit: quota.Bytes}},
		Nodes: []quota.NodeSpec{{Policy: "strict", Limits: memory(2 << 30)}, {Path: "a", Limits: memory(3 << 30)}},
	}
	out := ledger.New(quota.DefaultBounds()).Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	if out.Refused == nil || !strings.Contains(out.Refused.Text, "add up to 3Gi, more than its limit of 2Gi") {
		t.Errorf("the refusal is %v", out.Refused)
	}
}
