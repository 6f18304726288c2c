package config

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParts: the parts of all teams add up to what there is, and differ by less than a tenth where it is divisible.
func TestParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			"1", "3", "40:items", "1000", "2Ti", "1Gi", "7G", "1000000:bytes", "2.5", "400m", "100:milli",
		}).Draw(t, "amount")
		s, err := parseShare("x=" + text)
		if err != nil {
			t.Fatal(err)
		}
		teams := rapid.IntRange(1, 50).Draw(t, "teams")
		first, last, sum := partOf(s, teams, 0), partOf(s, teams, teams-1), int64(0)
		for i := range teams {
			sum += partOf(s, teams, i)
		}
		if sum != s.amount || first < last || first-last > max(1, s.amount/int64(10*teams)) {
			t.Fatalf("%d parts of %s are from %d to %d, together %d", teams, text, first, last, sum)
		}
	})
}

// TestShares: what is no share is refused with what to write.
func TestShares(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"cores": "is not NAME=AMOUNT", "=4": "is not NAME=AMOUNT", "cores=": "is not an amount",
		"cores=4:things": "is not a unit: write count, milli, bytes or items", "cores=0": "there are 0 of cores",
		"disk=1GB": "1GB",
	} {
		if _, err := parseShare(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
