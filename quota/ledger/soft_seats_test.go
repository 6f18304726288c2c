package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestManyAlike: among many that are alike, too, the oldest go first, and those that left are skipped.
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
	if diff := cmp.Diff(sitting[56:], ledger.Sitting(p.ledger.Reader(), "t", "")); diff != "" {
		t.Errorf("still sitting (-want +got):\n%s", diff)
	}
	if err := p.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestManyUnlike: among many of whom no two are alike, the longest counted claim that fits is reclaimed, then the next
// who still fits, whatever the others ask for.
func TestManyUnlike(t *testing.T) {
	p := newPlayer(false)
	const many, room = 300, 1000
	play := func(c ...string) {
		t.Helper()
		if _, err := p.play(c); err != nil {
			t.Fatalf("%s: %v", c[0], err)
		}
	}
	play("apply", "tree t policy=borrowing resources=cpu,mem cpu=max mem=max",
		fmt.Sprintf("node a cpu=%d mem=%d", room, room))
	play(fmt.Sprintf("allocate first t:a cpu=%d mem=%d", room, room))
	var stay, slide []string
	cpu, mem := 0, 0
	for i := range many {
		id, wantCPU, wantMem := fmt.Sprintf("x%d", i), 1+i*7919%many, 1+i*6101%many
		play(fmt.Sprintf("allocate %s t:a cpu=%d mem=%d", id, wantCPU, wantMem))
		if i%20 == 0 {
			play("freeze")
		}
		switch {
		case i%11 == 3:
			play("release " + id)
		case cpu+wantCPU <= room && mem+wantMem <= room:
			cpu, mem, slide = cpu+wantCPU, mem+wantMem, append(slide, id)
		default:
			stay = append(stay, id)
		}
	}
	play("release first")
	if diff := cmp.Diff(slide, ledger.Sitting(p.ledger.Reader(), "t", "a")); diff != "" {
		t.Errorf("slid down (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stay, ledger.Sitting(p.ledger.Reader(), "t", "")); diff != "" {
		t.Errorf("still borrow (-want +got):\n%s", diff)
	}
	if err := p.ledger.Check(); err != nil {
		t.Error(err)
	}
}
