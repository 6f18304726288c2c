package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

func TestLedgerChecksEveryLimitUpToTheRoot(t *testing.T) {
	for _, limited := range []string{"a/b/leaf-0", middleNode, topNode} {
		t.Run(limited, func(t *testing.T) {
			l := newLedger()
			l.nodes[limited].limits = amounts{10, 5}
			if got := l.allocate([]byte("first"), []byte("a/b/leaf-0"), amounts{6, 5}); got != done {
				t.Fatalf("the first allocation: outcome %d", got)
			}
			for _, held := range []amounts{{5, 0}, {0, 1}} {
				if got := l.allocate([]byte("second"), []byte("a/b/leaf-0"), held); got != denied {
					t.Errorf("allocating %v more: outcome %d, want denied", held, got)
				}
			}
			for _, path := range []string{"a/b/leaf-0", middleNode, topNode} {
				if used := l.nodes[path].used; used != (amounts{6, 5}) {
					t.Errorf("%s has %v in use after denials, want [6 5]", path, used)
				}
			}
			if got := l.release([]byte("first")); got != done {
				t.Fatalf("release: outcome %d", got)
			}
			if used := l.nodes[limited].used; used != (amounts{}) || len(l.allocations) != 0 {
				t.Errorf("%s has %v in use after the release", limited, used)
			}
		})
	}
}

func TestLedgerRefusesUnknownAndUsedNames(t *testing.T) {
	l := newLedger()
	if got := l.allocate([]byte("x"), []byte("a/c"), amounts{1, 1}); got != unknownNode {
		t.Errorf("an unknown node: outcome %d", got)
	}
	if got := l.release([]byte("x")); got != unknownID {
		t.Errorf("an unknown id: outcome %d", got)
	}
	l.allocate([]byte("x"), []byte(topNode), amounts{1, 1})
	if got := l.allocate([]byte("x"), []byte(topNode), amounts{1, 1}); got != usedID {
		t.Errorf("a used id: outcome %d", got)
	}
}

func TestEntriesAreAppliedInOrder(t *testing.T) {
	f := newFSM()
	entry := appendAllocate(nil, "x", "a/b/leaf-7", amounts{300, 2})
	entry = appendRelease(entry, "y")
	entry = appendAllocate(entry, "x", "a/b/leaf-7", amounts{1, 1})
	answers := f.ApplyBatch([]*raft.Log{
		{Type: raft.LogCommand, Data: make([]byte, rawEntryBytes)},
		{Type: raft.LogConfiguration},
		{Type: raft.LogCommand, Data: entry},
	})
	if got, want := fmt.Sprint(answers), fmt.Sprint([]any{nil, nil, []outcome{done, unknownID, usedID}}); got != want {
		t.Errorf("answers are %s, want %s", got, want)
	}
	if u := f.usage(); u.Allocations != 1 || u.Used["a"] != (amounts{300, 2}) || len(u.Used) != 3 {
		t.Errorf("usage is %+v", u)
	}
}

func TestDamagedEntriesAreErrors(t *testing.T) {
	whole := appendAllocate(nil, "x", "a/b/leaf-7", amounts{300, 2})
	f := newFSM()
	for length := 1; length < len(whole); length++ {
		if answer := f.Apply(&raft.Log{Type: raft.LogCommand, Data: whole[:length]}); answer != any(errDamaged) {
			t.Errorf("the first %d bytes: answer %v", length, answer)
		}
	}
	if u := f.usage(); u.Allocations != 0 {
		t.Errorf("usage is %+v", u)
	}
}

type sink struct {
	raft.SnapshotSink
	bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) { return s.Buffer.Write(p) }

func (*sink) Close() error { return nil }

func TestSnapshotsRestoreUsage(t *testing.T) {
	f := newFSM()
	f.Apply(&raft.Log{Type: raft.LogCommand, Data: appendAllocate(nil, "x", "a/b/leaf-7", amounts{3, 4})})
	taken, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	f.Apply(&raft.Log{Type: raft.LogCommand, Data: appendRelease(nil, "x")})
	var kept sink
	if err := taken.Persist(&kept); err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(io.NopCloser(&kept.Buffer)); err != nil {
		t.Fatal(err)
	}
	if u := f.usage(); u.Allocations != 1 || u.Used["a/b/leaf-7"] != (amounts{3, 4}) || u.Used["a"] != (amounts{3, 4}) {
		t.Errorf("usage is %+v", u)
	}
}
