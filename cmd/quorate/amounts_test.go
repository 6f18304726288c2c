package main

import (
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/quota"
)

// TestLargestAmountIsTheLedgers: manifest must not import quota, so it has its own constant for the largest amount.
func TestLargestAmountIsTheLedgers(t *testing.T) {
	if quantity.Max != int64(quota.MaxAmount) {
		t.Errorf("people may write up to %d, the ledger takes up to %d", quantity.Max, quota.MaxAmount)
	}
}

// TestAmountsAreWrittenAlike: the ledger writes amounts in its texts as the command line does.
func TestAmountsAreWrittenAlike(t *testing.T) {
	units := map[quota.Unit]quoratev1.Unit{
		quota.Count: quoratev1.Unit_UNIT_COUNT, quota.Milli: quoratev1.Unit_UNIT_MILLI,
		quota.Bytes: quoratev1.Unit_UNIT_BYTES, quota.Items: quoratev1.Unit_UNIT_ITEMS,
	}
	for unit, its := range units {
		for _, amount := range []int64{0, 1, 999, 1000, 1024, 1500, 2000, 1 << 30, 3 << 39, 1e12, quantity.Max} {
			ledgers, ours := quota.FormatAmount(quota.Amount(amount), unit), quantity.Format(amount, its)
			if ledgers != ours {
				t.Errorf("%d %s are %s for the ledger, and %s on the command line", amount, unit, ledgers, ours)
			}
		}
	}
}
