package fsm

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// moment is a list of commands with one stamp of ledger time.
type moment struct {
	stamp    quota.Stamp
	commands []quota.Command
}

// moments returns random commands of every kind, or of the kinds whose effects interact: claims that displace each
// other under reservations, moves and rollbacks.
func moments() *rapid.Generator[[]moment] {
	return rapid.Custom(func(t *rapid.T) []moment {
		var list []moment
		now := quota.Stamp{}
		trees, commands := quotatest.Tree, quotatest.AllCommands
		if rapid.Bool().Draw(t, "mixed") {
			trees, commands = quotatest.MixedTree, quotatest.MixedCommands
		}
		for _, name := range quotatest.TreeNames {
			tree := trees(name).Draw(t, "tree")
			list = append(list, moment{now, []quota.Command{tree}})
		}
		for range rapid.IntRange(1, 12).Draw(t, "moments") {
			now.At += quota.Instant(rapid.Int64Range(-1, 6).Draw(t, "at"))
			now.Wall += rapid.Int64Range(-1, 6).Draw(t, "wall")
			list = append(list, moment{now, rapid.SliceOfN(commands(), 1, 12).Draw(t, "commands")})
		}
		return list
	})
}

// TestReplay (I10): the same commands give the same bytes and outcomes for any division into entries and batches, and
// with a snapshot and restore at any point.
func TestReplay(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		bounds := quotatest.Bounds().Draw(t, "bounds")
		list := moments().Draw(t, "moments")
		one := replay(t, bounds, list, func(string) bool { return true }, func() bool { return false })
		coin := func(what string) bool { return rapid.Bool().Draw(t, what) }
		other := replay(t, bounds, list, coin, func() bool { return rapid.IntRange(0, 4).Draw(t, "restart") == 4 })
		if one.outcomes != other.outcomes {
			t.Fatalf("outcomes differ:\n%s\n%s", one.outcomes, other.outcomes)
		}
		if !bytes.Equal(one.image(t), other.image(t)) {
			t.Fatal("the images differ")
		}
	})
}

// replayed is a state machine with the outcomes of its commands.
type replayed struct {
	machine  *FSM
	outcomes string
}

// replay applies commands. cut decides where an entry or a batch ends, restart where a snapshot is taken and restored.
func replay(t *rapid.T, bounds quota.Bounds, list []moment, cut func(what string) bool, restart func() bool) *replayed {
	r := &replayed{machine: New(Options{Bounds: bounds})}
	index := uint64(1)
	batch := []*raft.Log{{Index: index, Type: raft.LogCommand, Data: mustJoin(t, Checkpoint())}}
	for _, m := range list {
		for from := 0; from < len(m.commands); {
			to := from + 1
			for to < len(m.commands) && !cut("entry") {
				to++
			}
			data, err := EncodeEntry(m.stamp, m.commands[from:to])
			if err != nil {
				t.Fatal(err)
			}
			index++
			batch = append(batch, &raft.Log{Index: index, Type: raft.LogCommand, Data: data})
			from = to
			if cut("batch") {
				r.apply(t, batch)
				batch = nil
				if restart() {
					r.restart(t, bounds)
				}
			}
		}
	}
	r.apply(t, batch)
	return r
}

func mustJoin(t *rapid.T, parts ...Part) []byte {
	data, err := JoinEntry(quota.Stamp{}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r *replayed) apply(t *rapid.T, batch []*raft.Log) {
	for _, response := range r.machine.ApplyBatch(batch) {
		outcomes, ok := response.(Outcomes)
		if !ok {
			t.Fatalf("the response is %v", response)
		}
		for _, o := range outcomes {
			r.outcomes += describeOutcome(t, o)
		}
	}
}

func describeOutcome(t *rapid.T, o ledger.Outcome) string {
	var info *quota.AllocationInfo
	if o.Allocation != nil {
		copied := o.Allocation.Info()
		info = &copied
	}
	text, err := json.Marshal([]any{o.Refused, o.Decision, info, o.Configuration, o.Repeated, o.Restored, o.Expired})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func (r *replayed) restart(t *rapid.T, bounds quota.Bounds) {
	s, err := r.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	out := &sink{}
	if err := s.Persist(out); err != nil {
		t.Fatal(err)
	}
	before, chain := r.machine.Chain()
	r.machine = New(Options{Bounds: bounds})
	if err := r.machine.Restore(readCloser{bytes.NewReader(out.Bytes())}); err != nil {
		t.Fatal(err)
	}
	if after, restored := r.machine.Chain(); after != before || restored != chain {
		t.Fatalf("index %d and chain %x became %d and %x", before, chain, after, restored)
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// image returns the snapshot without the parts that depend on the entries: index and chain.
func (r *replayed) image(t *rapid.T) []byte {
	s, err := r.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	frozen := s.(*snapshot)
	frozen.header.Index, frozen.header.LastEvent = 0, 0
	frozen.header.Chain, frozen.audit = nil, nil // they follow the entries
	out := &sink{}
	if err := frozen.Persist(out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
