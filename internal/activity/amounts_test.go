package activity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

// amounts are the amounts of a series as text, one line for each step.
func (s *scene) amounts(t *testing.T, key Key) string {
	t.Helper()
	steps, err := s.steps(t, key)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, step := range steps {
		line := step.From.Format("15:04")
		for _, a := range step.Amounts {
			line += fmt.Sprintf(" %s %d of %s waiting %d", a.Resource, a.Used, a.Limit, a.Waiting)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (s *scene) configure(t *testing.T, resources []quota.Resource, nodes ...quota.NodeSpec) {
	t.Helper()
	s.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{Name: "t", Resources: resources, Nodes: nodes}}})
}

// TestAmountsOfTheLastSteps: each step has what is used at its end, the limit that is in force then and what is waited
// for; also over changes of limits and resources, and until the node is removed.
func TestAmountsOfTheLastSteps(t *testing.T) {
	s := newScene(t, Bounds{})
	cores := []quota.Resource{{Name: "cores", Unit: quota.Count}}
	root := quota.NodeSpec{Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(3)}}}
	s.do(t, want("one", "a/b"), want("two", "c"))
	s.do(t, waiting("three", "a/b"))
	s.tick(t, StepLength)
	s.configure(t, cores, root, quota.NodeSpec{Path: "a"}, quota.NodeSpec{Path: "a/b"}, quota.NodeSpec{Path: "c"})
	s.tick(t, 2*StepLength)
	s.configure(t, append(cores, quota.Resource{Name: "disks", Unit: quota.Count}),
		root, quota.NodeSpec{Path: "a"}, quota.NodeSpec{Path: "a/b"}, quota.NodeSpec{Path: "c"})
	s.do(t, quota.Release{ID: "two"})
	s.tick(t, StepLength)
	s.configure(t, cores, root, quota.NodeSpec{Path: "a"}, quota.NodeSpec{Path: "a/b"})
	for node, want := range map[string]string{
		"": `08:00 cores 2 of 2 waiting 1
08:05 cores 3 of 3 waiting 0
08:10 cores 3 of 3 waiting 0
08:15 cores 2 of 3 waiting 0 disks 0 of unlimited waiting 0
08:20 cores 2 of 3 waiting 0`,
		"a/b": `08:00 cores 1 of unlimited waiting 1
08:05 cores 2 of unlimited waiting 0
08:10 cores 2 of unlimited waiting 0
08:15 cores 2 of unlimited waiting 0 disks 0 of unlimited waiting 0
08:20 cores 2 of unlimited waiting 0`,
		"c": `08:00 cores 1 of unlimited waiting 0
08:05 cores 1 of unlimited waiting 0
08:10 cores 1 of unlimited waiting 0
08:15 cores 0 of unlimited waiting 0 disks 0 of unlimited waiting 0
08:20`,
	} {
		if got := s.amounts(t, Key{Tree: "t", Node: node}); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", node, got, want)
		}
	}
}

// TestLastSteps: a caller gets as many steps as it asks for, of several nodes at once.
func TestLastSteps(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"))
	s.tick(t, 3*StepLength)
	list, _, err := s.Series(t.Context(), Query{Keys: []Key{node("c"), node("a"), node("")}, LastSteps: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || len(list[0]) != 2 || len(list[1]) != 0 || len(list[2]) != 2 {
		t.Fatalf("got %v", list)
	}
	if from := list[0][0].From.Format("15:04"); from != "08:10" {
		t.Errorf("the last two steps begin at %s", from)
	}
}

// TestTheFirstResourcesHaveAmounts: of a tree with more, the others have none.
func TestTheFirstResourcesHaveAmounts(t *testing.T) {
	bounds := DefaultBounds()
	bounds.Amounts = 2
	s := newScene(t, bounds)
	var resources []quota.Resource
	for _, name := range []string{"a", "b", "cores", "d"} {
		resources = append(resources, quota.Resource{Name: name, Unit: quota.Count})
	}
	s.configure(t, resources, quota.NodeSpec{})
	s.do(t, want("one", ""))
	if got := s.amounts(t, node("")); got != "08:00 a 0 of unlimited waiting 0 b 0 of unlimited waiting 0" {
		t.Errorf("got %s", got)
	}
}

// TestAmountsAreBounded: beyond the bound in bytes the least active nodes lose their amounts, and nothing else.
func TestAmountsAreBounded(t *testing.T) {
	bounds := DefaultBounds()
	bounds.AmountBytes = 2*amountLogBytes + 100
	s := newScene(t, bounds)
	s.do(t, want("one", "c"))
	s.do(t, want("two", "a")) // the last with an event are a and the root
	if got := s.amounts(t, node("c")); got != "08:00" {
		t.Errorf("c has the amounts %s", got)
	}
	s.expect(t, node("c"), "08:00 held 1 waiting 0 granted 1 released 0 lost 0 longest 0")
	for _, path := range []string{"", "a"} {
		if got := s.amounts(t, node(path)); !strings.HasPrefix(got, "08:00 cores") {
			t.Errorf("%q has the amounts %s", path, got)
		}
	}
	s.do(t, quota.Release{ID: "two"})
	for i := range 300 {
		id := fmt.Sprint("more-", i)
		s.do(t, want(id, "c"))
		s.tick(t, StepLength)
		s.checkAmountBytes(t)
		s.do(t, quota.Release{ID: id})
		s.tick(t, StepLength)
		s.checkAmountBytes(t)
	}
	for s.nodes.order.Len() > 0 {
		s.nodes.dropLast()
		s.checkAmountBytes(t)
	}
}

func (s *scene) checkAmountBytes(t *testing.T) {
	t.Helper()
	bytes := 0
	for series := range s.nodes.allSeries() {
		bytes += series.amountBytes()
	}
	if bytes != s.nodes.amountBytes || bytes > s.bounds.AmountBytes {
		t.Fatalf("%d bytes are counted, there are %d", s.nodes.amountBytes, bytes)
	}
}
