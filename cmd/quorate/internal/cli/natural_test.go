package cli

import (
	"slices"
	"testing"
)

func TestCompareNatural(t *testing.T) {
	want := []string{"", "a", "a-01", "a-1", "a-2", "a-10", "a-10-1", "a-10-b", "a-b", "ab", "b2", "b10"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNatural)
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
	for _, a := range want {
		for _, b := range want {
			if (CompareNatural(a, b) == 0) != (a == b) || CompareNatural(a, b) != -CompareNatural(b, a) {
				t.Errorf("%q and %q compare as %d and %d", a, b, CompareNatural(a, b), CompareNatural(b, a))
			}
		}
	}
}
