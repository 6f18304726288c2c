package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Entry is a record of a chain as its line. It never changes.
type Entry struct {
	Head

	Line []byte
}

// Ring keeps the newest records of the ledger's chain, at most MaxRecords and MaxBytes. It is not safe for concurrent
// use. The zero value is an empty chain.
type Ring struct {
	// entries are oldest first. Elements are never written twice, so that a copy of the slice stays valid.
	entries []Entry
	head    Head
	bytes   int
}

// Append makes a record the next one of the chain. It sets the chain, the number and the hashes.
func (g *Ring) Append(r Record) {
	r.Chain, r.Number = Ledger, g.head.Number+1
	r, line := Encode(r, g.head.Hash)
	g.add(Entry{Head{r.Number, r.Hash}, slices.Clip(line)})
}

func (g *Ring) add(e Entry) {
	g.entries = append(g.entries, e)
	g.head = e.Head
	g.bytes += len(e.Line)
	for len(g.entries) > MaxRecords || g.bytes > MaxBytes && len(g.entries) > 1 {
		g.bytes -= len(g.entries[0].Line)
		g.entries = g.entries[1:]
	}
}

// Load adds a record that a ring had kept: the oldest first. It refuses one that does not continue the chain, and more
// than a ring keeps.
func (g *Ring) Load(line []byte) error {
	r, err := Decode(line)
	switch {
	case err != nil:
		return err
	case r.Chain != Ledger:
		return errors.New("a record of a server is in the chain of the ledger")
	case len(g.entries) >= MaxRecords || len(g.entries) > 0 && g.bytes+len(line) > MaxBytes:
		return fmt.Errorf("there are more records than %d, or more bytes than %d", MaxRecords, MaxBytes)
	}
	if len(g.entries) > 0 {
		if err := follows(g.head, &r); err != nil {
			return err
		}
	}
	g.add(Entry{Head{r.Number, r.Hash}, slices.Clone(line)})
	return nil
}

// Head is the newest record.
func (g *Ring) Head() Head { return g.head }

// Entries returns the kept records, oldest first. The list stays as it is when the ring grows, and must not be changed.
func (g *Ring) Entries() []Entry { return slices.Clip(g.entries) }

// After returns at most limit of the kept records after a number, oldest first.
func (g *Ring) After(number uint64, limit int) []Entry {
	from, found := slices.BinarySearchFunc(g.entries, number,
		func(e Entry, number uint64) int { return cmp.Compare(e.Number, number) })
	if found {
		from++
	}
	return slices.Clip(g.entries[from:min(len(g.entries), from+limit)])
}
