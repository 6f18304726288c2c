package ledger_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestItemsAgainstOracle gives random commands about leases and items to the ledger and to the oracle, which must agree
// on every outcome, on who holds which item in which state, and on what is due when.
func TestItemsAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnItems)
}

// FuzzItems does the same with commands that a fuzzer finds; its seeds make it a test too. Inputs are long: fuzz with
// -fuzzminimizetime=1x.
func FuzzItems(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 16<<10)
		random := rand.NewChaCha8([32]byte{byte(seed)})
		if _, err := random.Read(data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(agreeOnItems))
}

func agreeOnItems(t *rapid.T) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 10
	p := &pair{ledger: ledger.New(bounds), oracle: newOracle(bounds)}
	for _, name := range []string{"t", "u"} {
		p.apply(t, quotatest.ItemTree(name).Draw(t, "first trees"))
	}
	p.steps(t, 80, func() quota.Command { return quotatest.ItemCommands().Draw(t, "command") })
}
