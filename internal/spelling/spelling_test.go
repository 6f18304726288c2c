package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"atlas", "cms", "lhcb", "physics", "physics-2", "web"}
	for typed, want := range map[string]string{
		"atlsa": "atlas", "Atlas": "atlas", "phisics": "physics", "physics2": "physics", "phys": "physics",
		"wbe": "", "we": "web", "x": "", "": "", "alice": "", "cmss": "cms",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("%q is taken for %q, want %q", typed, got, want)
		}
	}
}

func TestEditsWithin(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		most, edits int
		within      bool
	}{
		{"web", "web", 0, 0, true},
		{"web", "wed", 0, 0, false},
		{"web", "wed", 1, 1, true},
		{"kitten", "sitting", 3, 3, true},
		{"kitten", "sitting", 2, 0, false},
		{"a", "abcd", 2, 0, false},
		{"", "ab", 2, 2, true},
	} {
		edits, within := EditsWithin(c.a, c.b, c.most)
		if within != c.within || within && edits != c.edits {
			t.Errorf("%s and %s within %d: %d, %t", c.a, c.b, c.most, edits, within)
		}
	}
}
