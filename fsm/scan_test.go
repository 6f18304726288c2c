package fsm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

func isFrequent(c quota.Command) bool {
	switch c.(type) {
	case quota.Allocate, quota.Release, quota.Renew:
		return true
	}
	return false
}

// compareDecoders decodes data in both ways: what the scanner accepts, decodeEntry decodes to the same.
func compareDecoders(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, s *entryScanner, data []byte,
) (accepted bool) {
	t.Helper()
	fast, accepted := s.scanEntry(data)
	if !accepted {
		return false
	}
	slow, err := ownFormats.decodeEntry(data)
	if err != nil {
		t.Fatalf("%x was accepted as %+v, and decodeEntry says %v", data, fast, err)
	}
	if diff := cmp.Diff(slow, fast, cmp.AllowUnexported(decoded{}, callerRun{})); diff != "" {
		t.Fatalf("%x, decoded (-as ever +quickly):\n%s", data, diff)
	}
	return true
}

// TestQuickCodecWritesTheSameBytes: entries of any commands have the bytes that the standard encoder gives, and the
// scanner reads all entries of frequent commands.
func TestQuickCodecWritesTheSameBytes(t *testing.T) {
	var scanner entryScanner
	frequent := 0
	verify.Check(t, func(t *rapid.T) {
		commands := rapid.SliceOfN(quotatest.AllCommands(), 1, 20).Draw(t, "commands")
		if rapid.Bool().Draw(t, "frequent only") {
			commands = slices.DeleteFunc(commands, func(c quota.Command) bool { return !isFrequent(c) })
		}
		quick, ok := appendCommands(nil, commands)
		if ok != !slices.ContainsFunc(commands, func(c quota.Command) bool { return !isFrequent(c) }) {
			t.Fatalf("encoded: %v", ok)
		}
		if !ok || len(commands) == 0 {
			return
		}
		standard, err := marshalEntry(nil, &logv1.Entry{Commands: each(commands, encodeCommand)})
		if err != nil || !bytes.Equal(quick, standard) {
			t.Fatalf("%+v\nbecame   %x\nand was  %x, %v", commands, quick, standard, err)
		}
		entry, err := EncodeEntry(quota.Stamp{At: 3, Wall: rapid.Int64().Draw(t, "wall")}, commands)
		if err != nil {
			t.Fatal(err)
		}
		if !compareDecoders(t, &scanner, entry) {
			t.Fatalf("%x is not read quickly: %+v", entry, commands)
		}
		frequent++
	})
	if frequent == 0 {
		t.Error("no entry had frequent commands only")
	}
}

func TestInvalidTextIsNotEncoded(t *testing.T) {
	for _, c := range []quota.Command{
		quota.Release{ID: "\xff"},
		quota.Renew{ID: "i", Data: []quota.Label{{Key: "k", Value: "\xc0\x80"}}},
		quota.Allocate{ID: "i", Claims: []quota.Claim{{Tree: "t", Amounts: quota.Vector{{Resource: "\xed\xa0\x80"}}}}},
		quota.Allocate{ID: "i", Principal: quota.Principal{User: "u", Groups: []string{"\x80"}}},
	} {
		if _, err := EncodeCommands(nil, []quota.Command{c}); err == nil {
			t.Errorf("%+v was encoded", c)
		}
	}
}

// FuzzScanEntry compares the decoders on arbitrary bytes.
func FuzzScanEntry(f *testing.F) {
	for _, data := range oddEntries(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var scanner entryScanner
		compareDecoders(t, &scanner, data)
	})
}

// TestOddEntriesAreLeftToDecodeEntry: encodings that protobuf accepts and our encoder never writes.
func TestOddEntriesAreLeftToDecodeEntry(t *testing.T) {
	var scanner entryScanner
	entries := oddEntries(t)
	if !compareDecoders(t, &scanner, entries[0]) {
		t.Error("an ordinary entry is not read quickly")
	}
	for i, data := range entries[1:] {
		if compareDecoders(t, &scanner, data) {
			t.Errorf("odd entry %d was read quickly: %x", i+1, data)
		}
	}
}

// TestEveryChangedByte changes each byte of an entry to each value: both decoders agree on all of them.
func TestEveryChangedByte(t *testing.T) {
	var scanner entryScanner
	data, accepted := oddEntries(t)[0], 0
	for i := range data {
		before := data[i]
		for value := range 256 {
			data[i] = byte(value)
			if compareDecoders(t, &scanner, data) {
				accepted++
			}
		}
		data[i] = before
	}
	for i := range data { // truncated
		compareDecoders(t, &scanner, data[:i])
	}
	if accepted < len(data) {
		t.Errorf("%d changed entries were accepted", accepted)
	}
}

// oddEntries begin with an ordinary one.
func oddEntries(tb testing.TB) [][]byte {
	tb.Helper()
	allocate := quota.Allocate{
		ID: "job", Claims: []quota.Claim{{
			Tree: "t", Node: "é", Amounts: quota.Vector{{Resource: "cpu", Amount: 300}, {Resource: "gpu"}},
			Standing: quota.Standing{Priority: -3, Type: 2, Unpreemptable: true},
		}, {Tree: "u", Picks: []quota.Pick{{Resource: "slot", Count: 2, State: "free", Names: []string{"a", ""}}}}},
		Labels: []quota.Label{{Key: "k"}, {Value: "v"}}, Principal: quota.Principal{Groups: []string{"", "g"}},
		Mode: quota.Wait, WaitFor: 5, Priority: 9, Data: []quota.Label{{Key: "d", Value: "e"}},
	}
	renew := quota.Renew{ID: "job", Fence: 7, TTL: 60_000, Items: []quota.ItemUpdate{{State: "dirty"}}}
	release := quota.Release{ID: "job", Items: []quota.ItemName{{Tree: "t"}, {}}}
	ordinary := joined(tb, partOf(tb, ciCaller, allocate), partOf(tb, nil, release), partOf(tb, evaCaller, renew))
	head := []byte{entryMark, 0x08, 1, 0x10, 5}
	entry := func(fields ...byte) []byte { return append(slices.Clone(head), fields...) }
	odd := [][]byte{
		ordinary,
		head,                                    // without a command
		append(slices.Clone(ordinary), 0x08, 1), // a field again, out of order
		append([]byte{entryMark, 0x08, 1}, ordinary[1:]...),           // a field twice
		append(slices.Clone(ordinary), 0x38, 1),                       // a number where callers are
		append(slices.Clone(ordinary), 0x40, 1),                       // an unknown field
		append(slices.Clone(ordinary), 0x3a, 0),                       // a run without commands
		append(slices.Clone(ordinary), 0x22, 0),                       // an empty command
		append(slices.Clone(ordinary), 0x28, 4),                       // the feature level
		append(slices.Clone(ordinary), 0x30, 1),                       // a checkpoint
		entry(0x22, 3, 0x12, 1, 0x0a),                                 // truncated in a release
		entry(0x22, 2, 0x32, 0),                                       // a confirmation
		entry(0x22, 4, 0x0a, 0, 0x12, 0),                              // two commands in one
		entry(0x22, 4, 0x0a, 2, 0x0a, 0),                              // an empty text
		entry(0x22, 0x82, 0, 0x0a, 0),                                 // a length with needless bytes
		entry(0x22, 5, 0x0a, 3, 0x28, 0x80, 0),                        // a number with needless bytes
		entry(0x22, 4, 0x0a, 2, 0x28, 0),                              // a zero
		entry(0x22, 5, 0x0a, 3, 0x28, 0x80, 2),                        // a mode beyond those of a byte
		entry(0x22, 4, 0x0a, 2, 0x22, 0),                              // a principal without a name
		entry(0x22, 6, 0x0a, 4, 0x12, 2, 0x30, 2),                     // a bool that is 2
		entry(0x22, 5, 0x0a, 3, 0x0a, 1, 0xff),                        // not UTF-8
		entry(0x22, 4, 0x0a, 2, 0x0b, 0x0c),                           // a group
		entry(0x22, 4, 0x62, 2, 0x2a, 0),                              // an update without its item
		{entryMark, 0x08, byte(NewestFormat() + 1), 0x22, 2, 0x12, 0}, // a format of the future
		{entryMark, 0x22, 2, 0x12, 0},                                 // no format
		ordinary[1:],                                                  // an entry of a development build
		{},
	}
	huge := protowire.AppendVarint(entry(0x22), 1<<63)
	return append(odd, huge, protowire.AppendVarint(entry(0x22), 1<<32))
}
