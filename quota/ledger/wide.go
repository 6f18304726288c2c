package ledger

import (
	"math/bits"

	"github.com/quorate/quorate/quota"
)

// wide is a signed sum of more amounts than fit in one.
type wide struct {
	high int64
	low  uint64
}

// plus adds an amount of either sign.
func (w wide) plus(a quota.Amount) wide {
	low, carry := bits.Add64(w.low, uint64(a), 0)
	return wide{high: w.high + int64(a>>63) + int64(carry), low: low}
}

// clipped is the sum as an amount, but at most MaxAmount. It must not be below what an amount can be.
func (w wide) clipped() quota.Amount {
	if w.high > 0 || w.high == 0 && w.low > uint64(quota.MaxAmount) {
		return quota.MaxAmount
	}
	return quota.Amount(w.low)
}
