package faults

import (
	"fmt"
	"strings"
	"testing"
)

// plan is the first steps of a schedule in words.
func plan(t *testing.T, seed uint64, kinds []Kind, steps int) []Step {
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

func TestAScheduleIsItsSeed(t *testing.T) {
	one, same, other := fmt.Sprint(plan(t, 7, All(), 100)), fmt.Sprint(plan(t, 7, All(), 100)), fmt.Sprint(plan(t, 8, All(), 100))
	if one != same {
		t.Errorf("seed 7 gives\n%s\nand\n%s", one, same)
	}
	if one == other {
		t.Error("another seed gives the same schedule")
	}
}

func TestEachKindComesOnceARound(t *testing.T) {
	kinds := All()
	first := map[string]bool{}
	for _, step := range plan(t, 3, kinds, len(kinds)) {
		first[step.Faults[0].Name] = true
	}
	if len(first) != len(kinds) {
		t.Errorf("%d of %d kinds came in the first round", len(first), len(kinds))
	}
}

// TestWhatIsAloneIsAlone because two of those together break more than is promised.
func TestWhatIsAloneIsAlone(t *testing.T) {
	alone := map[string]bool{}
	for _, k := range All() {
		alone[k.Name] = k.Alone
	}
	for seed := range uint64(20) {
		for _, step := range plan(t, seed, All(), 100) {
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
		if seen[k.Name] || k.Name == "" || k.Says == "" || strings.Contains(k.Name, ",") {
			t.Errorf("%+v: its name is there twice, or it says nothing", k)
		}
		seen[k.Name] = true
	}
}

func TestAScheduleNeedsAKind(t *testing.T) {
	if _, err := NewSchedule(1, nil); err == nil {
		t.Error("a schedule of nothing was made")
	}
}
