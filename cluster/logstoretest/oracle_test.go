package logstoretest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/cluster/logstoretest"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/internal/verify"
)

// oracle is a log store in memory, as simple as possible.
type oracle struct {
	entries     map[uint64]raft.Log
	first, last uint64
}

func (o *oracle) append(entries []*raft.Log) {
	for _, e := range entries {
		if o.last == 0 {
			o.first = e.Index
		}
		o.entries[e.Index], o.last = *e, e.Index
	}
}

func (o *oracle) delete(first, last uint64) {
	for i := range o.entries {
		if i >= first && i <= last {
			delete(o.entries, i)
		}
	}
	switch {
	case len(o.entries) == 0:
		o.first, o.last = 0, 0
	case first <= o.first:
		o.first = last + 1
	default:
		o.last = first - 1
	}
}

// machine compares a log store with the oracle, over reopenings.
type machine struct {
	kind   logstoretest.Kind
	folder string
	want   oracle
	got    logstoretest.Stores
	log    raft.LogStore
}

func (m *machine) open(t rapid.TB) {
	stores, err := m.kind.Open(m.folder, logstoretest.SmallSegment)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	m.got, m.log = stores, raftguard.NewChecksum(stores.Logs)
}

func (m *machine) store(t *rapid.T, first uint64) {
	var entries []*raft.Log
	for i := range rapid.Uint64Range(1, 6).Draw(t, "entries") {
		size := rapid.SampledFrom([]int{0, 1, 7, 8, 9, 100, 3000, 9000}).Draw(t, "bytes")
		e := &raft.Log{
			Index: first + i, Term: rapid.Uint64Range(1, 5).Draw(t, "term"), Data: bytes.Repeat([]byte{byte(first + i)}, size),
			Type: rapid.SampledFrom([]raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogConfiguration}).Draw(t, "type"),
		}
		if rapid.Bool().Draw(t, "timed") {
			e.AppendedAt = time.Unix(int64(first+i), 5)
		}
		entries = append(entries, e)
	}
	if err := m.log.StoreLogs(entries); err != nil {
		t.Fatalf("store %d entries from %d: %v", len(entries), first, err)
	}
	m.want.append(entries)
}

func (m *machine) remove(t *rapid.T, first, last uint64) {
	if err := m.log.DeleteRange(first, last); err != nil {
		t.Fatalf("delete %d to %d: %v", first, last, err)
	}
	m.want.delete(first, last)
}

func (m *machine) compare(t *rapid.T) {
	first, err1 := m.log.FirstIndex()
	last, err2 := m.log.LastIndex()
	if first != m.want.first || last != m.want.last || err1 != nil || err2 != nil {
		t.Fatalf("the log reaches from %d to %d (%v), want %d to %d", first, last, errors.Join(err1, err2), m.want.first,
			m.want.last)
	}
	for i := max(first, 1) - 1; i <= last+1; i++ {
		m.compareEntry(t, i)
	}
}

func (m *machine) compareEntry(t *rapid.T, i uint64) {
	var got raft.Log
	err := m.log.GetLog(i, &got)
	want, exists := m.want.entries[i]
	if !exists {
		if !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatalf("entry %d does not exist, but reading it returns %v", i, err)
		}
		return
	}
	if err != nil || got.Index != want.Index || got.Term != want.Term || got.Type != want.Type ||
		!bytes.Equal(got.Data, want.Data) || got.AppendedAt.Unix() != want.AppendedAt.Unix() {
		t.Fatalf("entry %d is %+v (%v), want %+v", i, got, err, want)
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.compare,
		"append": func(t *rapid.T) {
			next := m.want.last + 1
			if m.want.last == 0 {
				next = rapid.Uint64Range(1, 50).Draw(t, "first")
			}
			m.store(t, next)
		},
		"truncate": func(t *rapid.T) { // a conflicting suffix
			if m.want.last == 0 {
				t.Skip("the log is empty")
			}
			m.remove(t, rapid.Uint64Range(m.want.first, m.want.last).Draw(t, "first"), m.want.last)
		},
		"compact": func(t *rapid.T) { // what a snapshot covers
			if m.want.last == 0 {
				t.Skip("the log is empty")
			}
			m.remove(t, m.want.first, rapid.Uint64Range(m.want.first, m.want.last).Draw(t, "last"))
		},
		"gap": func(t *rapid.T) { // after a snapshot was installed; what is left before the gap does not matter
			next := m.want.last + rapid.Uint64Range(2, 90).Draw(t, "missing")
			old := m.want
			m.want = oracle{entries: map[uint64]raft.Log{}}
			m.store(t, next)
			if first, err := m.log.FirstIndex(); err != nil || first != next && first != old.first {
				t.Fatalf("after a gap the log begins at %d (%v)", first, err)
			} else if first == old.first && first != next {
				if err := m.log.DeleteRange(old.first, old.last); err != nil {
					t.Fatal(err)
				}
			}
		},
		"reopen": func(t *rapid.T) {
			if err := m.got.Close(); err != nil {
				t.Fatal(err)
			}
			m.open(t)
		},
	}
}

// TestEveryKindBehavesLikeTheOracle runs random calls as raft makes them.
func TestEveryKindBehavesLikeTheOracle(t *testing.T) {
	for _, kind := range logstoretest.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			root, runs := t.TempDir(), 0
			verify.Check(t, func(t *rapid.T) {
				runs++
				m := &machine{kind: kind, folder: fmt.Sprintf("%s/%d", root, runs), want: oracle{entries: map[uint64]raft.Log{}}}
				if err := os.Mkdir(m.folder, 0o700); err != nil {
					t.Fatal(err)
				}
				m.open(t)
				defer func() { _ = m.got.Close(); _ = os.RemoveAll(m.folder) }()
				t.Repeat(m.actions())
			})
		})
	}
}
