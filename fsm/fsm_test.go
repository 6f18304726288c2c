package fsm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// newTestFSM returns a state machine with a tree and one allocation, at index 2.
func newTestFSM(t testing.TB, o Options) *FSM {
	t.Helper()
	f := New(o)
	applyData(f, 1, mustEncode(t, benchTree()))
	outcomes, ok := applyData(f, 2, mustEncode(t, benchAllocate(0))).(Outcomes)
	if !ok || !outcomes[0].Decision.Granted {
		t.Fatalf("the first allocation: %+v", outcomes)
	}
	return f
}

func TestOutcomesInOrder(t *testing.T) {
	f := newTestFSM(t, Options{})
	outcomes := applyData(
		f, 3, mustEncode(t, benchAllocate(1), benchAllocate(0), quota.Release{ID: "nobody"},
			quota.DeleteTree{Tree: "t"})).(Outcomes)
	switch {
	case len(outcomes) != 4:
		t.Fatalf("%d outcomes for 4 commands", len(outcomes))
	case outcomes[0].Allocation.Fence() != 2:
		t.Errorf("the second grant has fence %d", outcomes[0].Allocation.Fence())
	case !outcomes[1].Repeated:
		t.Error("the repeat is none")
	case outcomes[2].Refused.Kind != quota.NotFound || outcomes[3].Refused.Kind != quota.InUse:
		t.Errorf("refused %v and %v", outcomes[2].Refused, outcomes[3].Refused)
	}
	index, err := f.View(func(v ledger.Reader) {
		if v.Counts().Held != 2 || v.Now() != 1 || f.options.Bounds != quota.DefaultBounds() {
			t.Errorf("%+v are held at %d", v.Counts(), v.Now())
		}
	})
	if index != 3 || err != nil || f.Applied() != 3 || f.Now() != 1 {
		t.Errorf("the view is of index %d: %v", index, err)
	}
}

// TestEntriesWithoutCommands: entries without commands only advance the index.
func TestEntriesWithoutCommands(t *testing.T) {
	f := newTestFSM(t, Options{})
	_, before := f.Chain()
	if response := f.Apply(
		&raft.Log{Index: 3, Type: raft.LogConfiguration, Data: []byte("raft's own")}); response != nil {
		t.Errorf("raft's own entry was answered %v", response)
	}
	if index, after := f.Chain(); index != 3 || after != before {
		t.Errorf("index %d, chain %x, want 3, %x", index, after, before)
	}
}

// TestHalt applies entries that cannot be decoded: the state machine halts before them, reports the index once, and
// refuses all later calls.
func TestHalt(t *testing.T) {
	newer := sampleEntry()
	newer.Format = NewestFormat() + 1
	unknown := &logv1.Entry{Format: 1, Commands: []*logv1.Command{{}}}
	for name, data := range map[string][]byte{
		"a newer format":     mustMarshal(t, newer),
		"no format":          mustMarshal(t, &logv1.Entry{Commands: sampleEntry().GetCommands()}),
		"an unknown command": mustMarshal(t, unknown),
		"an unknown field":   append(mustMarshal(t, sampleEntry()), 0xf8, 0x07, 0x01),
		"no valid text":      {0, 8, 1, 34, 5, 18, 3, 10, 1, 0xff},
		"no command":         mustMarshal(t, &logv1.Entry{Format: 1}),
		"a truncated entry":  mustMarshal(t, sampleEntry())[:50],
		"nothing":            nil,
		"something else":     []byte("\xff\xff\xff\xff"),
		"a good and a bad one": mustMarshal(t,
			&logv1.Entry{Format: 1, Commands: []*logv1.Command{sampleEntry().GetCommands()[1], {}}}),
	} {
		t.Run(name, func(t *testing.T) {
			var reported []error
			f := newTestFSM(t, Options{})
			f.options.OnHalt = func(err error) { reported = append(reported, errors.Join(err, f.Halted())) } // reads are allowed
			before := snapshotOf(t, f)
			_, chain := f.Chain()
			waiting := make(chan error, 1)
			go func() { waiting <- f.WaitApplied(context.Background(), 9) }()
			good := mustEncode(t, benchAllocate(1))
			responses := f.ApplyBatch([]*raft.Log{{Index: 3, Data: data}, {Index: 4, Data: good}})
			responses = append(responses, applyData(f, 5, good), applyData(f, 6, data))
			for _, r := range responses {
				if err, ok := r.(error); !ok || !errors.Is(err, ErrHalted) ||
					!strings.Contains(err.Error(), "log entry 3") {
					t.Fatalf("the response is %v", r)
				}
			}
			if len(reported) != 1 {
				t.Errorf("it told %d times that it halted", len(reported))
			}
			refusesAll(t, f, before)
			if err := <-waiting; !errors.Is(err, ErrHalted) {
				t.Errorf("who waited got %v", err)
			}
			if index, after := f.Chain(); index != 2 || after != chain {
				t.Errorf("it moved to index %d", index)
			}
		})
	}
}

func refusesAll(t *testing.T, f *FSM, sound []byte) {
	t.Helper()
	_, viewed := f.View(func(ledger.Reader) { t.Error("it lent its ledger") })
	_, snapshot := f.Snapshot()
	restored := f.Restore(io.NopCloser(bytes.NewReader(sound)))
	waited := f.WaitApplied(context.Background(), 1)
	_, tried := f.Sandbox(func(ledger.Sandbox) { t.Error("it lent its ledger to try something") })
	for i, err := range []error{viewed, tried, snapshot, restored, waited, f.Halted()} {
		if !errors.Is(err, ErrHalted) {
			t.Errorf("answer %d is %v", i, err)
		}
	}
}

func mustMarshal(t testing.TB, entry *logv1.Entry) []byte {
	t.Helper()
	data, err := marshalEntry([]byte{entryMark}, entry)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWaitApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFSM(t, Options{})
		if err := f.WaitApplied(context.Background(), 2); err != nil {
			t.Errorf("it has applied 2 already: %v", err)
		}
		wait := func(ctx context.Context, index uint64) <-chan error {
			done := make(chan error, 1)
			go func() { done <- f.WaitApplied(ctx, index) }()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(context.Background())
		four, never, fifty := wait(ctx, 4), wait(ctx, 5), wait(context.Background(), 50)
		applyData(f, 3, mustEncode(t, benchAllocate(1)))
		synctest.Wait()
		if len(four) > 0 {
			t.Error("who waits for 4 was told of 3")
		}
		applyData(f, 4, mustEncode(t, benchAllocate(2)))
		if err := <-four; err != nil {
			t.Errorf("waited for 4: %v", err)
		}
		cancel()
		if err := <-never; !errors.Is(err, context.Canceled) {
			t.Errorf("waited for 5, which never came: %v", err)
		}
		other := New(Options{})
		for index := uint64(1); index < 60; index++ {
			other.Apply(&raft.Log{Index: index, Type: raft.LogConfiguration})
		}
		if err := f.Restore(io.NopCloser(bytes.NewReader(snapshotOf(t, other)))); err != nil {
			t.Fatal(err)
		}
		if err := <-fifty; err != nil {
			t.Errorf("a restore moved it to 59: %v", err)
		}
	})
}
