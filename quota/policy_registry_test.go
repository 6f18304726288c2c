package quota_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

// TestAddAPolicy adds one as CONTRIBUTING.md says, and asks it: claims at leaves only, and at most half of what a node may
// hold for each child.
func TestAddAPolicy(t *testing.T) {
	t.Cleanup(quota.Register(halves{quota.Switches{
		PolicyName: "halves", UnsetIs: quota.AtMost(3), AtLeavesOnly: true, ForUnknown: quota.UnknownToAncestor,
	}}))
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

// halves is a policy that no switches make.
type halves struct{ quota.Switches }

func (halves) CheckFamily(f quota.Family) string {
	for _, c := range f.Children {
		if 2*c.Limit.Amount > f.Limit.Amount {
			return "its child " + c.Name + " has more than half"
		}
	}
	return ""
}

// TestContradictions: switches that cannot be together are a mistake of the code, and stop the program at once.
func TestContradictions(t *testing.T) {
	sound := quota.Switches{PolicyName: "sound", UnsetIs: quota.NoLimit()}
	quota.Register(sound)()
	const closed = "a switch is set to something outside of its closed list"
	for _, c := range []struct {
		want  string
		spoil func(s *quota.Switches)
	}{
		{"policy : it needs a name like those of nodes", func(s *quota.Switches) { s.PolicyName = "" }},
		{"policy a b: it needs a name like those of nodes", func(s *quota.Switches) { s.PolicyName = "a b" }},
		{"UnsetIs must say what unset means", func(s *quota.Switches) { s.UnsetIs = quota.Limit{} }},
		{closed, func(s *quota.Switches) { s.Sum = 3 }},
		{closed, func(s *quota.Switches) { s.ForUnknown = 3 }},
		{closed, func(s *quota.Switches) { s.Borrow = 3 }},
		{closed, func(s *quota.Switches) { s.SetBy = 2 }},
		{closed, func(s *quota.Switches) { s.Preempt = 4 }},
		{"Preempt needs BorrowSoftly", func(s *quota.Switches) { s.Preempt = quota.PreemptLower }},
		{"Preempt needs BorrowSoftly", func(s *quota.Switches) { s.Preempt, s.Borrow = quota.PreemptBorrowers, quota.BorrowBounded }},
		{"MakeUnknown needs SumFree", func(s *quota.Switches) { s.ForUnknown, s.Sum = quota.MakeUnknown, quota.SumWithinLimit }},
		{"MakeUnknown excludes AtLeavesOnly", func(s *quota.Switches) { s.ForUnknown, s.AtLeavesOnly = quota.MakeUnknown, true }},
		{"MakeUnknown excludes BorrowSoftly", func(s *quota.Switches) { s.ForUnknown, s.Borrow = quota.MakeUnknown, quota.BorrowSoftly }},
	} {
		s := sound
		c.spoil(&s)
		if got := panicOf(func() { quota.Register(s)() }); !strings.Contains(got, c.want) {
			t.Errorf("%+v: panics with %q, want %q", s, got, c.want)
		}
	}
	if got := panicOf(func() { quota.Register(sound, sound)() }); got != "quota: two policies are named sound" {
		t.Errorf("two of one name: panics with %q", got)
	}
}

// panicOf is what a function panics with, or "".
func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}
