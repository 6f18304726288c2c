package main

import (
	"testing"

	"github.com/quorate/quorate/manifest"
	"github.com/quorate/quorate/quota"
)

// TestLargestAmountIsTheLedgers: manifest must not import quota, so it has its own constant for the largest amount.
func TestLargestAmountIsTheLedgers(t *testing.T) {
	if manifest.MaxAmount != int64(quota.MaxAmount) {
		t.Errorf("people may write up to %d, the ledger takes up to %d", manifest.MaxAmount, quota.MaxAmount)
	}
}
