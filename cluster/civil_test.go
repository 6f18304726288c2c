package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

const minute quota.Span = 60 * 1000

// TestAgreeOnOffset tests examples: the present offset is 1000 minutes unless there is none.
func TestAgreeOnOffset(t *testing.T) {
	for _, c := range []struct {
		what    string
		voters  int
		present quota.Span
		minutes []float64
		want    float64
		agreed  bool
	}{
		{"the first of one", 1, 0, []float64{7}, 7, true},
		{"the first of a majority", 3, 0, []float64{1000, 1000.1, 1}, 1000, true},
		{"the first without a majority", 3, 0, []float64{1000}, 0, false},
		{"the first of two that differ", 3, 0, []float64{1000, 1}, 0, false},
		{"within a second", 1, 1000 * minute, []float64{1000.016}, 1000, true},
		{"the median", 3, 1000 * minute, []float64{1001, 1003, 1002}, 1002, true},
		{"backward by any span", 3, 1000 * minute, []float64{1, 2000, 10}, 10, true},
		{"a jump of a majority", 3, 1000 * minute, []float64{2000, 1, 2001}, 2000, true},
		{"a jump to different times", 3, 1000 * minute, []float64{2000, 1, 2100}, 1000, false},
		{"two of three on both sides", 3, 1000 * minute, []float64{900, 1100}, 1000, true},
		{"four on both sides", 4, 1000 * minute, []float64{900, 999, 1001, 1100}, 1000, true},
		{"four later", 4, 1000 * minute, []float64{900, 1001, 1002, 1100}, 1001, true},
		{"no majority", 5, 1000 * minute, []float64{1001, 1001}, 1000, false},
		{"before 1970", 1, 1000 * minute, []float64{-1}, 1000, false},
	} {
		offsets := make([]quota.Span, len(c.minutes))
		for i, m := range c.minutes {
			offsets[i] = quota.Span(m * float64(minute))
		}
		got, agreed := agreeOnOffset(c.voters, offsets, c.present)
		if got != quota.Span(c.want*float64(minute)) || agreed != c.agreed {
			t.Errorf("%s: %v of %d voters give %d ms, %v; want %v minutes, %v", c.what, c.minutes, c.voters, got, agreed,
				c.want, c.agreed)
		}
	}
}

// TestWrongClocksOfAMinority: whatever a minority reports, and whichever of the others answer, civil time moves only
// towards the clocks of the others, and not out of them.
func TestWrongClocksOfAMinority(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		voters := rapid.IntRange(1, 7).Draw(t, "voters")
		right := rapid.SliceOfN(rapid.Int64Range(1_000_000, 1_002_000), voters/2+1, voters).Draw(t, "right")
		anywhere := rapid.OneOf(rapid.Int64Range(-1<<50, 1<<50), rapid.Int64Range(0, 3_000_000))
		wrong := rapid.SliceOfN(anywhere, 0, voters-len(right)).Draw(t, "wrong")
		present := quota.Span(rapid.Int64Range(0, 3_000_000).Draw(t, "present"))
		answered := rapid.IntRange(0, len(right)).Draw(t, "answered")
		var offsets []quota.Span
		for _, o := range slices.Concat(right[:answered], wrong) {
			offsets = append(offsets, quota.Span(o))
		}
		got, agreed := agreeOnOffset(voters, offsets, present)
		first, last := quota.Span(slices.Min(right)), quota.Span(slices.Max(right))
		switch {
		case got != present && (!agreed || got < min(first, present) || got > max(last, present)):
			t.Fatalf("%v of %d voters move civil time from %d to %d", offsets, voters, present, got)
		case first <= present && present <= last && (got < first || got > last):
			t.Fatalf("%v of %d voters move civil time from %d to %d", offsets, voters, present, got)
		case answered == voters/2+1 && answered == len(right) && len(offsets) == voters &&
			(got < first-civilTolerance || got > last+civilTolerance):
			t.Fatalf("%v of %d voters leave civil time at %d", offsets, voters, got)
		}
	})
}
