package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// TestCivilTimeAsText: the text is that of Go's calendar.
func TestCivilTimeAsText(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, quota.MaxCivilTime).Draw(t, "ms")
		if got, want := quota.CivilTime(ms).String(), time.UnixMilli(ms).UTC().Format(time.RFC3339); got != want {
			t.Fatalf("%d is %s, want %s", ms, got, want)
		}
	})
}
