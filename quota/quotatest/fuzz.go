package quotatest

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Fuzz runs a property with inputs that a fuzzer finds. Eight seeds make it a test too. Inputs are long: fuzz with
// -fuzzminimizetime=1x.
func Fuzz(f *testing.F, property func(*rapid.T)) {
	f.Helper()
	for seed := range uint64(8) {
		data := make([]byte, 16<<10)
		random := rand.NewChaCha8([32]byte{byte(seed)})
		if _, err := random.Read(data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}
