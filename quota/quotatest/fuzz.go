package quotatest

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// Fuzz runs a property with inputs that a fuzzer finds. A few seeds make it a test too; a test with verify.Check has
// more runs of the property. Inputs are long: fuzz with -fuzzminimizetime=1x.
func Fuzz(f *testing.F, property func(*rapid.T)) {
	f.Helper()
	for seed := range verify.Scale[uint64](2, 8) {
		data := make([]byte, 16<<10)
		random := rand.NewChaCha8([32]byte{byte(seed)})
		if _, err := random.Read(data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}
