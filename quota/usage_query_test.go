package quota_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// TestShares compares shares with fractions of any size.
func TestShares(t *testing.T) {
	t.Parallel()
	amount := func(t *rapid.T, least quota.Amount) quota.Amount {
		return quota.Amount(rapid.OneOf(
			rapid.Int64Range(int64(least), 5), rapid.Int64Range(int64(quota.MaxAmount)-5, int64(quota.MaxAmount)),
		).Draw(t, "amount"))
	}
	fraction := func(used, limit quota.Amount) *big.Rat { return big.NewRat(int64(used), int64(limit)) }
	rapid.Check(t, func(t *rapid.T) {
		used, limit, otherUsed, otherLimit := amount(t, 0), amount(t, 1), amount(t, 0), amount(t, 1)
		share := quota.ShareOf(used, quota.AtMost(limit))
		other := quota.ShareOf(otherUsed, quota.AdvisoryLimit(otherLimit))
		want := fraction(used, limit).Cmp(fraction(otherUsed, otherLimit))
		if got := share.Compare(other); got != want {
			t.Fatalf("%v compared with %v is %d, want %d", share, other, got, want)
		}
		percent := rapid.IntRange(0, quota.MaxUsagePercent).Draw(t, "percent")
		if want := fraction(used, limit).Cmp(big.NewRat(int64(percent), 100)) >= 0; share.IsAtLeast(percent) != want {
			t.Fatalf("%v is at least %d %%: want %v", share, percent, want)
		}
	})
}

// TestSharesOfNothing: use of a limit of 0 is more than all else, and no use, or no limit, is a share of 0.
func TestSharesOfNothing(t *testing.T) {
	t.Parallel()
	over := quota.ShareOf(1, quota.AtMost(0))
	if over.Compare(quota.ShareOf(quota.MaxAmount, quota.AtMost(1))) <= 0 || !over.IsAtLeast(quota.MaxUsagePercent) {
		t.Error("use of a limit of 0 is less than another share")
	}
	for _, none := range []quota.Share{quota.ShareOf(0, quota.AtMost(0)), quota.ShareOf(7, quota.NoLimit())} {
		if none.IsAtLeast(1) || !none.IsAtLeast(0) || none.Compare(quota.ShareOf(0, quota.AtMost(3))) != 0 {
			t.Errorf("%v is not a share of 0", none)
		}
	}
}
