package fsm

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// randomAllocation is a record of any kind, of which some have rare properties.
func randomAllocation(field protowire.Number) *rapid.Generator[ledger.AllocationImage] {
	return rapid.Custom(func(t *rapid.T) ledger.AllocationImage {
		request := rapid.Custom(func(t *rapid.T) quota.Allocate {
			c, _ := quotatest.AllCommands().Filter(func(c quota.Command) bool {
				_, isAllocate := c.(quota.Allocate)
				return isAllocate
			}).Draw(t, "command").(quota.Allocate)
			return c
		}).Draw(t, "request")
		number := func(name string) int64 {
			return rapid.SampledFrom([]int64{0, 1, 127, 128, 1 << 40, -1}).Draw(t, name)
		}
		list := func(name string) []uint64 {
			values := rapid.SliceOfN(rapid.Uint64(), 0, 3).Draw(t, name)
			return append([]uint64(nil), values...)
		}
		a := ledger.AllocationImage{
			Request: request, Fence: uint64(number("fence")),
			Granted: quota.Stamp{At: quota.Instant(number("at")), Wall: number("wall")},
			Placed:  list("placed"), ArrivalSeqs: list("arrival numbers"),
			PlacedPaths: rapid.SampledFrom([][]string{nil, {""}, {"a/b", "é"}}).Draw(t, "paths"),
			State:       rapid.SampledFrom([]quota.State{quota.Held, quota.Reserved, quota.WasPreempted}).Draw(t, "state"),
			Until:       quota.Instant(number("until")), Forced: rapid.Bool().Draw(t, "forced"),
			By:      rapid.SampledFrom([]string{"", "other"}).Draw(t, "by"),
			Expires: quota.Instant(number("expires")), TTL: quota.Span(number("ttl")),
			Owner: rapid.SampledFrom([]string{"", "account/ci"}).Draw(t, "owner"),
		}
		if field == endedRecord {
			a.Ended = &quota.Stamp{At: quota.Instant(number("end")), Wall: number("end wall")}
		}
		rare := []func(){
			func() { a.Homes = []uint64{1} }, func() { a.Groups = []string{"g"} },
			func() { a.RevokedBy = "r" }, func() { a.Unclaimed = true }, func() { a.Undo = &ledger.UndoImage{Arrival: 1} },
			func() { a.Data = []quota.Label{{Key: "k"}} }, func() { a.Preempted = []quota.Preempted{{ID: "p"}} },
			func() { a.Items = []ledger.HeldItemImage{{Name: "n"}} },
			func() { a.Displaced = []ledger.DisplacementImage{{ID: "d"}} },
			func() { a.EndReason = &quota.Reason{} }, func() { a.RevokeReason = &quota.Reason{} },
			func() { a.MadeRoom = &quota.MadeRoom{} }, func() { a.DeclaredEnd = 1 },
		}
		if i := rapid.IntRange(-20, len(rare)-1).Draw(t, "rare"); i >= 0 {
			rare[i]()
		}
		return a
	})
}

// compareRecordReaders reads data in both ways: what the scanner accepts, the standard decoder reads as the same.
func compareRecordReaders(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, s *entryScanner, data []byte,
) (accepted bool) {
	t.Helper()
	fast, ended, accepted := s.scanAllocation(data)
	if !accepted {
		return false
	}
	record := &logv1.Record{}
	exact, err := unmarshal(data, record)
	if err != nil || !exact {
		t.Fatalf("%x was accepted as %+v, but the standard decoder says exact %v, %v", data, fast, exact, err)
	}
	slow := decodeAllocation(record.GetHeld(), false)
	if ended {
		slow = decodeAllocation(record.GetEnded(), true)
	}
	if (record.GetEnded() != nil) != ended {
		t.Fatalf("%x was read as ended: %v", data, ended)
	}
	if diff := cmp.Diff(slow, fast); diff != "" {
		t.Fatalf("%x, read (-as ever +quickly):\n%s", data, diff)
	}
	return true
}

// TestQuickRecordsHaveTheSameBytes: records have the bytes that the standard encoder gives, and the scanner reads them.
func TestQuickRecordsHaveTheSameBytes(t *testing.T) {
	var scanner entryScanner
	plain, rare := 0, 0
	verify.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]protowire.Number{heldRecord, endedRecord}).Draw(t, "field")
		image := randomAllocation(field).Draw(t, "image")
		quick, ok := appendAllocation(nil, image, field)
		if ok == hasRareParts(&image) {
			t.Fatalf("encoded: %v", ok)
		}
		if !ok {
			rare++
			return
		}
		standard, err := appendDelimited(nil, allocationRecord(image, field))
		if err != nil || !bytes.Equal(append(appendLength(nil, len(quick)), quick...), standard) {
			t.Fatalf("%+v\nbecame   %x\nand was  %x, %v", image, quick, standard, err)
		}
		if !compareRecordReaders(t, &scanner, quick) {
			t.Fatalf("%x is not read quickly", quick)
		}
		plain++
	})
	if plain == 0 || rare == 0 && plain > 50 {
		t.Errorf("%d plain and %d rare records", plain, rare)
	}
}

// sampleRecord has all fields that the scanner reads.
func sampleRecord() []byte {
	data, _ := appendAllocation(nil, ledger.AllocationImage{
		Request: quota.Allocate{ID: "job", Claims: []quota.Claim{{
			Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 300}},
		}}},
		Fence: 7, Granted: quota.Stamp{At: 1, Wall: 2}, Placed: []uint64{300, 0}, PlacedPaths: []string{"a", ""},
		State: quota.Reserved, Until: 9, Forced: true, By: "b", ArrivalSeqs: []uint64{1}, Expires: 4, TTL: 500,
		Ended: &quota.Stamp{At: 3, Wall: 4}, Owner: "corp/eva",
	}, endedRecord)
	return data
}

// TestEveryChangedByteOfARecord changes each byte of a record to each value: both readers agree on all of them.
func TestEveryChangedByteOfARecord(t *testing.T) {
	var scanner entryScanner
	data, accepted := sampleRecord(), 0
	for i := range data {
		before := data[i]
		for value := range 256 {
			data[i] = byte(value)
			if compareRecordReaders(t, &scanner, data) {
				accepted++
			}
		}
		data[i] = before
		compareRecordReaders(t, &scanner, data[:i])
	}
	if accepted < len(data) {
		t.Errorf("%d changed records were accepted", accepted)
	}
}

// FuzzScanAllocation compares the readers on arbitrary bytes.
func FuzzScanAllocation(f *testing.F) {
	f.Add(sampleRecord())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var scanner entryScanner
		compareRecordReaders(t, &scanner, data)
	})
}
