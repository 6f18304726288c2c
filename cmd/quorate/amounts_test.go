package main

import (
	"testing"

	"github.com/quorate/quorate/manifest"
	"github.com/quorate/quorate/quota"
)

// TestAmountsEndWhereTheLedgerEnds: manifest may not import quota, so it says the largest amount a second time.
func TestAmountsEndWhereTheLedgerEnds(t *testing.T) {
	if manifest.MaxAmount != int64(quota.MaxAmount) {
		t.Errorf("people may write up to %d, the ledger takes up to %d", manifest.MaxAmount, quota.MaxAmount)
	}
}
