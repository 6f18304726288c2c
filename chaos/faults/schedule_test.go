package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/nodes"
)

func firstSteps(t *testing.T, seed uint64, kinds []Kind, steps int) []Step {
	t.Helper()
	s, err := NewSchedule(seed, kinds)
	if err != nil {
		t.Fatal(err)
	}
	var list []Step
	for range steps {
		list = append(list, s.Next())
	}
	return list
}

func TestScheduleFollowsSeed(t *testing.T) {
	one, same := fmt.Sprint(firstSteps(t, 7, All(), 100)), fmt.Sprint(firstSteps(t, 7, All(), 100))
	other := fmt.Sprint(firstSteps(t, 8, All(), 100))
	if one != same {
		t.Errorf("seed 7 gives\n%s\nand\n%s", one, same)
	}
	if one == other {
		t.Error("another seed gives the same schedule")
	}
}

func TestEachKindComesOncePerRound(t *testing.T) {
	kinds := All()
	first := map[string]bool{}
	for _, step := range firstSteps(t, 3, kinds, len(kinds)-1+maxNodes) {
		first[step.Faults[0].Name] = true
	}
	if len(first) != len(kinds) {
		t.Errorf("%d of %d kinds came in the first round", len(first), len(kinds))
	}
}

// TestAloneFaultsAreNotMixed: two of them together destroy more than the service promises to survive.
func TestAloneFaultsAreNotMixed(t *testing.T) {
	alone := map[string]bool{}
	for _, k := range All() {
		alone[k.Name] = k.Alone
	}
	for seed := range uint64(20) {
		for _, step := range firstSteps(t, seed, All(), 100) {
			for _, f := range step.Faults {
				if alone[f.Name] && len(step.Faults) > 1 {
					t.Fatalf("seed %d: %s", seed, step)
				}
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		if seen[k.Name] || k.Name == "" || k.Description == "" || strings.Contains(k.Name, ",") {
			t.Errorf("%+v: its name is there twice, or it says nothing", k)
		}
		seen[k.Name] = true
	}
}

func TestScheduleNeedsKinds(t *testing.T) {
	if _, err := NewSchedule(1, nil); err == nil {
		t.Error("a schedule of nothing was made")
	}
}

// TestUpgradesComeEarly: a run must end with the new version on all nodes, and have it for a while.
func TestUpgradesComeEarly(t *testing.T) {
	var at []int
	for i, step := range firstSteps(t, 5, All(), 200) {
		if step.Faults[0].Name == "upgrade" {
			at = append(at, i)
		}
	}
	if want := []int{1, 3, 5, 7, 9}; !slices.Equal(at, want) {
		t.Errorf("nodes are upgraded at steps %v, want %v", at, want)
	}
}

func TestOnlyUpgrades(t *testing.T) {
	upgrades := slices.DeleteFunc(All(), func(k Kind) bool { return k.Name != "upgrade" })
	for _, step := range firstSteps(t, 5, upgrades, 20) {
		if step.Faults[0].Name != "upgrade" {
			t.Errorf("%s came, which was not requested", step)
		}
	}
}

// TestFaultsWaitForUpgrades: an older version may not survive these faults.
func TestFaultsWaitForUpgrades(t *testing.T) {
	late, early := Fault{Name: "late", skipInUpgrade: true}, Fault{Name: "early", isUpgrade: true}
	other := Fault{Name: "other"}
	target := &Target{Cluster: &nodes.Cluster{Nodes: []*nodes.Node{{ID: "n1"}}}, Old: "old"}
	for _, want := range [][3]bool{{true, false, false}, {false, true, false}} {
		if got := [3]bool{target.skipsFault(late), target.skipsFault(early), target.skipsFault(other)}; got != want {
			t.Errorf("with %d of 1 nodes upgraded it leaves alone %v, want %v", target.upgraded, got, want)
		}
		target.upgraded++
	}
}

func TestCountsOnlyFaultsThatHappened(t *testing.T) {
	ended := 0
	end := func(context.Context, *Target) error { ended++; return nil }
	step := Step{Faults: []Fault{
		{Name: "done", Begin: func(context.Context, *Target) error { return nil }, End: end},
		{Name: "no free node", Begin: func(context.Context, *Target) error { return errNoFreeNode }, End: end},
	}}
	counts, err := runStep(t.Context(), new(Target), step)
	if err != nil || counts.String() != "done 1" || ended != 1 {
		t.Errorf("%v, %v, %d were ended", counts, err, ended)
	}
}

// TestOnlyAMinorityOfClocksIsWrong: civil time follows a majority.
func TestOnlyAMinorityOfClocksIsWrong(t *testing.T) {
	target, err := NewTarget(&nodes.Cluster{Nodes: []*nodes.Node{{}, {}, {}, {}, {}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true, false} {
		if got := target.reserveClock(i / 2 * 3); got != want {
			t.Errorf("clock %d is reserved: %v, want %v", i/2*3, got, want)
		}
	}
	if target.reserveClock(1) {
		t.Error("three of five clocks are wrong")
	}
	if target.releaseClock(3); !target.reserveClock(1) {
		t.Error("a clock that was corrected counts")
	}
}
