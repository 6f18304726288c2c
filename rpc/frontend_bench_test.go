package rpc

import (
	"fmt"
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// BenchmarkFrontEndCalls measures a pair of in-process API calls of a front end.
func BenchmarkFrontEndCalls(b *testing.B) {
	d := oneNode(b)
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("a", i)
		if _, err := d.services.Allocations.Allocate(b.Context(), request(id, "cern:physics", 1)); err != nil {
			b.Fatal(err)
		}
		if _, err := d.services.Allocations.Release(b.Context(), &quoratev1.ReleaseRequest{Id: id}); err != nil {
			b.Fatal(err)
		}
	}
}
