package audit

import (
	"fmt"
	"strings"
	"testing"

	records "github.com/quorate/quorate/internal/audit"
)

// TestMergedFiles: records of several servers are in the order of time, those of the ledger are shown once, and a chain
// stays in its order although the clock of its writer went back.
func TestMergedFiles(t *testing.T) {
	ledger := func(number uint64, wall int64) *records.Record {
		return &records.Record{Chain: records.Ledger, Number: number, WallMs: wall, Hash: records.Hash{byte(number)}}
	}
	server := func(name string, number uint64, wall int64) *records.Record {
		return &records.Record{Chain: records.Server, Server: name, Number: number, WallMs: wall, Hash: records.Hash{99}}
	}
	hold := func(name string, number uint64, wall int64) *records.Record {
		r := server(name, number, wall)
		r.Kind, r.Index, r.Action, r.Detail = records.Hold, 7, "granted", "allocation show a"
		return r
	}
	var m merged
	m.add([]*records.Record{
		ledger(1, 10), server("n1", 1, 20), ledger(2, 50), ledger(3, 40), server("n1", 2, 60), hold("n1", 3, 70),
	})
	m.add([]*records.Record{
		ledger(1, 10), server("n2", 1, 15), ledger(2, 50), ledger(3, 40), ledger(4, 41), hold("n2", 2, 70),
	})
	var got []string
	for _, r := range m.inOrder() {
		got = append(got, fmt.Sprint(r.Server, r.Number))
	}
	if want := "1 n21 n11 2 3 4 n12 n13"; strings.Join(got, " ") != want {
		t.Errorf("the order is %v, want %s", got, want)
	}
}
