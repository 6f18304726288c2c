package audit_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/audit"
)

// chainOf returns the lines of records behind each other, with a record of the server between each two of the ledger.
func chainOf(count int) [][]byte {
	var lines [][]byte
	var ring audit.Ring
	var server audit.Hash
	for i := range count {
		ring.Append(audit.Record{Index: uint64(10 * i), Kind: audit.Access, Outcome: audit.Applied})
		lines = append(lines, ring.After(uint64(i), 1)[0].Line)
		r, line := audit.Encode(audit.Record{
			Chain: audit.Server, Number: uint64(i + 1), Server: "n1", Kind: audit.Refusal,
		}, server)
		server = r.Hash
		lines = append(lines, line)
	}
	return lines
}

func verify(lines [][]byte) (audit.Verifier, error) {
	var v audit.Verifier
	err := audit.ReadLines(bytes.NewReader(append(bytes.Join(lines, []byte("\n")), '\n')), func(_ int, line []byte) error {
		_, err := v.Add(line)
		return err
	})
	return v, err
}

// TestAWholeFileVerifies: both chains are followed, also from the middle.
func TestAWholeFileVerifies(t *testing.T) {
	lines := chainOf(5)
	v, err := verify(lines)
	if err != nil || v.Records != 10 || v.FirstLedger != 1 || v.Ledger.Number != 5 || v.Server.Number != 5 {
		t.Errorf("got %+v, %v", v, err)
	}
	if v, err = verify(lines[3:]); err != nil || v.FirstLedger != 3 || v.FirstServer != 2 {
		t.Errorf("from the middle: %+v, %v", v, err)
	}
}

// TestTamperedFilesAreFound: no line can be removed from the middle, repeated, replaced or moved.
func TestTamperedFilesAreFound(t *testing.T) {
	lines := chainOf(5)
	without := func(i int) [][]byte { return append(append([][]byte{}, lines[:i]...), lines[i+1:]...) }
	for i := 2; i < 8; i++ {
		if _, err := verify(without(i)); err == nil {
			t.Errorf("line %d can be removed", i)
		}
		if _, err := verify(append(append([][]byte{}, lines[:i+1]...), lines[i:]...)); err == nil {
			t.Errorf("line %d can be repeated", i)
		}
	}
	forged, line := audit.Encode(audit.Record{Chain: audit.Ledger, Number: 3, Kind: audit.Access}, audit.Hash{1})
	if _, err := verify(append(append([][]byte{}, lines[:4]...), line)); err == nil {
		t.Error("a record behind another one can be inserted")
	}
	_, next := audit.Encode(audit.Record{Chain: audit.Ledger, Number: 4, Kind: audit.Access}, forged.Hash)
	if _, err := verify(append([][]byte{line, next}, lines[8:]...)); err == nil {
		t.Error("records can be replaced")
	}
}

// TestDeclaredGaps: only a gap that a record declares is accepted, and only to its end.
func TestDeclaredGaps(t *testing.T) {
	lines := chainOf(6)
	gapTo := func(from, to uint64) []byte {
		_, line := audit.Encode(audit.Record{
			Chain: audit.Server, Number: 1, Server: "n1", Kind: audit.Gap, From: from, To: to,
		}, audit.Hash{})
		return line
	}
	v, err := verify([][]byte{lines[0], gapTo(2, 4), lines[8]})
	if err != nil || v.Missing != 3 || v.Ledger.Number != 5 {
		t.Errorf("got %+v, %v", v, err)
	}
	for name, file := range map[string][][]byte{
		"undeclared":  {lines[0], lines[8]},
		"too short":   {lines[0], gapTo(2, 3), lines[8]},
		"too long":    {lines[0], gapTo(2, 5), lines[8]},
		"backwards":   {lines[0], gapTo(4, 2), lines[4]},
		"from nought": {lines[0], gapTo(0, 4), lines[8]},
	} {
		if _, err := verify(file); err == nil {
			t.Errorf("%s: the gap is accepted", name)
		}
	}
}

// TestReadLines: incomplete and oversized lines are told apart from the end.
func TestReadLines(t *testing.T) {
	ignore := func(int, []byte) error { return nil }
	if err := audit.ReadLines(strings.NewReader("a\nb"), ignore); !errors.Is(err, audit.ErrTorn) {
		t.Errorf("a torn file: %v", err)
	}
	if err := audit.ReadLines(strings.NewReader(strings.Repeat("x", audit.MaxLine+2)+"\n"), ignore); err == nil {
		t.Error("a line without an end is read")
	}
	if err := audit.ReadLines(strings.NewReader(strings.Repeat("x", audit.MaxLine)+"\n"), ignore); err != nil {
		t.Error(err)
	}
}

// TestTheRingIsBounded: by records and by bytes, and it continues from what it was loaded with.
func TestTheRingIsBounded(t *testing.T) {
	var ring audit.Ring
	for range audit.MaxRecords + 5 {
		ring.Append(audit.Record{Kind: audit.Access})
	}
	kept := ring.Entries()
	if len(kept) != audit.MaxRecords || kept[0].Number != 6 || ring.Head().Number != audit.MaxRecords+5 {
		t.Errorf("%d records from %d are kept", len(kept), kept[0].Number)
	}
	if page := ring.After(2, 3); len(page) != 3 || page[0].Number != 6 {
		t.Errorf("after 2: %d records", len(page))
	}
	if page := ring.After(audit.MaxRecords+4, 3); len(page) != 1 {
		t.Errorf("at the end: %d records", len(page))
	}
	if page := ring.After(audit.MaxRecords+9, 3); len(page) != 0 {
		t.Errorf("behind the end: %d records", len(page))
	}
	large := audit.Record{Kind: audit.Configuration, Reason: strings.Repeat("x", audit.MaxText)}
	for range audit.MaxChanges {
		large.Changes = append(large.Changes, audit.Change{After: strings.Repeat("x", 500)})
	}
	for range 2 * audit.MaxBytes / audit.MaxChangeBytes {
		ring.Append(large)
	}
	total := 0
	for _, e := range ring.Entries() {
		total += len(e.Line)
	}
	if total > audit.MaxBytes || total < audit.MaxBytes/2 {
		t.Errorf("%d bytes are kept", total)
	}
}

// TestARingIsLoadedAgain: its records continue the chain, and nothing else is accepted.
func TestARingIsLoadedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring, loaded audit.Ring
		for _, r := range rapid.SliceOfN(records(), 1, 5).Draw(t, "records") {
			ring.Append(r)
		}
		skip := rapid.IntRange(0, len(ring.Entries())-1).Draw(t, "skip")
		for _, e := range ring.Entries()[skip:] {
			if err := loaded.Load(e.Line); err != nil {
				t.Fatal(err)
			}
		}
		ring.Append(audit.Record{Kind: audit.Restore})
		loaded.Append(audit.Record{Kind: audit.Restore})
		if ring.Head() != loaded.Head() {
			t.Fatalf("got %+v, want %+v", loaded.Head(), ring.Head())
		}
		if err := loaded.Load(ring.Entries()[0].Line); err == nil {
			t.Fatal("an old record is loaded")
		}
	})
}

// FuzzDecode: no input crashes the reader, and what it reads is what would be written.
func FuzzDecode(f *testing.F) {
	for _, line := range chainOf(2) {
		f.Add(line)
	}
	_, line := audit.Encode(example, audit.Hash{})
	f.Add(line)
	f.Add([]byte(`{"chain":"ledger"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := audit.Decode(line)
		if err != nil {
			return
		}
		if _, again := audit.Encode(r, r.Previous); !bytes.Equal(again, line) {
			t.Fatalf("got %s, want %s", again, line)
		}
		var v audit.Verifier
		if _, err := v.Add(line); err != nil && r.Kind != audit.Gap {
			t.Fatal(err)
		}
	})
}
