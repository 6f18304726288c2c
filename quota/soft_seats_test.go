package quota_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
)

// TestManyAlike: among many that are alike, too, the oldest go first, and whoever left is passed over.
func TestManyAlike(t *testing.T) {
	p := newPlayer(true)
	const many = 100
	commands := [][]string{{"apply", "tree t policy=borrowing resources=cpu cpu=100", "node a cpu=0", "node b cpu=60"}}
	var sitting []string
	for i := range many {
		id := fmt.Sprintf("x%d", i)
		commands = append(commands, []string{"allocate " + id + " t:a cpu=1"})
		sitting = append(sitting, id)
	}
	for _, gone := range []int{50, 0, 99, 1} {
		commands = append(commands, []string{fmt.Sprintf("release x%d", gone)})
		sitting = slices.DeleteFunc(sitting, func(id string) bool { return id == fmt.Sprintf("x%d", gone) })
	}
	for _, c := range commands {
		if _, err := p.play(c); err != nil {
			t.Fatalf("%s: %v", c[0], err)
		}
	}
	out := p.ledger.Apply(p.now, quota.Allocate{ID: "owner", Claims: []quota.Claim{
		{Tree: "t", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: 60}}},
	}})
	var preempted []string
	for _, v := range out.Decision.Preempted {
		preempted = append(preempted, v.ID)
	}
	if diff := cmp.Diff(sitting[:56], preempted); diff != "" {
		t.Errorf("preempted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sitting[56:], p.ledger.View().Sitting("t", "")); diff != "" {
		t.Errorf("still sitting (-want +got):\n%s", diff)
	}
	if err := p.ledger.Check(); err != nil {
		t.Error(err)
	}
}
