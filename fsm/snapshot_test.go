package fsm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

func snapshotOf(t testing.TB, f *FSM) []byte {
	t.Helper()
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out sink
	if err := s.Persist(&out); err != nil {
		t.Fatal(err)
	}
	s.Release()
	return out.Bytes()
}

func restored(t testing.TB, data []byte) *FSM {
	t.Helper()
	f := New(Options{})
	if err := f.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
		t.Fatal(err)
	}
	return f
}

func sampleFSM(t testing.TB) *FSM {
	t.Helper()
	f := New(Options{})
	entry := sampleEntry()
	for i, c := range entry.GetCommands()[2].GetApplyTrees().GetTrees()[0].GetNodes() {
		c.Policy = []string{"open", "strict"}[i]
	}
	entry.GetCommands()[2].GetApplyTrees().GetMeta().ExpectedRevision = nil
	unknown := quota.Claim{
		Tree: "t", Node: "b/c",
		Amounts: quota.Vector{{Resource: "mem", Amount: 5}, {Resource: "web", Amount: 0}},
	}
	for index, data := range [][]byte{
		mustMarshal(t, &logv1.Entry{Format: 1, TimeMs: 1000, WallMs: 2000, Commands: entry.GetCommands()[2:3]}),
		mustEncode(t, quota.Allocate{
			ID:     "root",
			Claims: []quota.Claim{{Tree: "t", Amounts: quota.Vector{{Resource: "cpu", Amount: 2}}}, unknown},
		}),
		mustEncode(t, quota.Allocate{
			ID: "gone", Claims: []quota.Claim{unknown},
			Labels: []quota.Label{{Key: "k", Value: "ü"}},
		}),
		mustEncode(t, quota.Release{ID: "gone"},
			quota.SetLimits{
				Tree: "t", Node: "a",
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(0)}},
			}),
	} {
		for _, o := range applyData(f, uint64(index+1), data).(Outcomes) {
			if o.Refused != nil || o.Decision != nil && !o.Decision.Granted {
				t.Fatalf("entry %d: %+v", index+1, o)
			}
		}
	}
	return f
}

func preemptingFSM(t testing.TB) *FSM {
	t.Helper()
	f := New(Options{})
	claims := func(amount quota.Amount) []quota.Claim {
		return []quota.Claim{{Tree: "t", Node: "org/team", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}}}
	}
	reserve := func(id string, span quota.Span) quota.Allocate {
		return quota.Allocate{ID: id, Claims: claims(1), Mode: quota.Reserve, ReserveFor: span}
	}
	who := quota.Principal{User: "u", Groups: []string{"g", "h"}, Application: "x"}
	standing := claims(2)
	standing[0].Standing = quota.Standing{Priority: -1, Type: 2, Unpreemptable: true}
	for index, entry := range []struct {
		at       quota.Instant
		commands []quota.Command
	}{
		{1, []quota.Command{
			benchTree(), quota.SetLimits{
				Tree: "t", Node: "org",
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(10)}},
			},
		}},
		{2, []quota.Command{
			reserve("lapsed", 1000), reserve("cancelled", 9000), reserve("confirmed", 9000),
			reserve("waiting", 3_000_000),
		}},
		{3, []quota.Command{quota.Cancel{ID: "cancelled"}, quota.Confirm{ID: "confirmed"}}},
		{1500, []quota.Command{quota.Expire{Most: 10}}},
		{1501, append(borrowers(), moving()...)},
		{1502, []quota.Command{
			quota.Allocate{ID: "whose", Claims: standing, Principal: who},
			quota.Allocate{ID: "denied", Claims: claims(9), Principal: who},
			quota.Allocate{ID: "forced", Claims: claims(9), Mode: quota.Force},
		}},
	} {
		data, err := EncodeEntry(quota.Stamp{At: entry.at, Wall: 1_800_000_000_000 + int64(entry.at)}, entry.commands)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range applyData(f, uint64(index+1), data).(Outcomes) {
			if o.Refused != nil {
				t.Fatalf("entry %d: %v", index+1, o.Refused)
			}
		}
	}
	return f
}

// borrowers are commands for a tree in which claims are counted above their nodes, moved and preempted, the last one by
// a reservation.
func borrowers() []quota.Command {
	limit := func(amount quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(amount)}}
	}
	tree := quota.TreeSpec{
		Name: "b", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{
				Policy: "borrowing", Limits: limit(10),
				Principals: []quota.PrincipalLimit{
					{Groups: []string{"g"}, Limits: quota.Vector{{Resource: "cpu", Amount: 99}}},
				},
			},
			{Path: "x", Limits: limit(4)},
			{Path: "y", Limits: limit(4)},
		},
	}
	ask := func(id, node string, priority int64) quota.Allocate {
		return quota.Allocate{
			ID: id, Principal: quota.Principal{User: "u", Groups: []string{"g"}},
			Claims: []quota.Claim{{
				Tree: "b", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: 2}},
				Standing: quota.Standing{Priority: priority},
			}},
		}
	}
	last := ask("pushes", "y", 1)
	last.Mode, last.ReserveFor = quota.Reserve, 3_000_000
	return []quota.Command{
		quota.ApplyTrees{Trees: []quota.TreeSpec{tree}},
		ask("x1", "x", 0), ask("x2", "x", 0), ask("x3", "x", 0),
		ask("x4", "x", 0), ask("y1", "y", 0), last,
	}
}

// moving are commands for a tree with a dynamic node, a moved node, and revisions that can be rolled back.
func moving() []quota.Command {
	tree := quota.TreeSpec{
		Name: "m", TreeSettings: quota.TreeSettings{Forest: "f", RequireReason: true},
		Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Policy: "project", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(9)}}},
			{Path: "a", Labels: []quota.Label{{Key: "k", Value: "v"}}},
		},
	}
	meta := quota.ChangeMeta{Actor: "eva", Reason: "because"}
	return []quota.Command{
		quota.ApplyTrees{Meta: meta, Trees: []quota.TreeSpec{tree}},
		quota.Allocate{ID: "made", Claims: []quota.Claim{
			{Tree: "m", Node: "new", Amounts: quota.Vector{{Resource: "cpu", Amount: 2}}},
		}},
		quota.MoveNode{Meta: meta, Tree: "m", From: "a", To: "c"},
	}
}

func TestSnapshotAndRestore(t *testing.T) {
	t.Run("first format", func(t *testing.T) { snapshotAndRestore(t, sampleFSM(t)) })
	t.Run("second format", func(t *testing.T) { snapshotAndRestore(t, preemptingFSM(t)) })
	t.Run("items", func(t *testing.T) { snapshotAndRestore(t, itemsFSM(t)) })
}

func snapshotAndRestore(t *testing.T, f *FSM) {
	t.Helper()
	data := snapshotOf(t, f)
	if err := CheckSnapshot(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
	g := restored(t, data)
	if !bytes.Equal(snapshotOf(t, g), data) {
		t.Error("the snapshot of what was restored is another one")
	}
	for index := uint64(20); index < 33; index++ {
		entry := mustEncode(t, benchAllocate(int(index)), benchTree(), quota.Release{ID: "root"})
		applyData(f, index, entry)
		applyData(g, index, entry)
		fAt, fChain := f.Chain()
		gAt, gChain := g.Chain()
		if fAt != gAt || fChain != gChain {
			t.Fatalf("the chains part at %d: %x and %x", index, fChain, gChain)
		}
	}
	if !bytes.Equal(snapshotOf(t, g), snapshotOf(t, f)) {
		t.Error("what was restored went another way")
	}
}

// TestChainsDiffer: replicas that applied different commands, or the same with another effect, have different chains.
func TestChainsDiffer(t *testing.T) {
	f, g, h := newTestFSM(t, Options{}), newTestFSM(t, Options{}), newTestFSM(t, Options{})
	h.ledger.Apply(quota.Stamp{}, quota.Release{ID: benchAllocate(0).ID}) // h has diverged
	applyData(f, 3, mustEncode(t, benchAllocate(0)))
	applyData(g, 3, mustEncode(t, benchAllocate(1)))
	applyData(h, 3, mustEncode(t, benchAllocate(0)))
	_, one := f.Chain()
	_, other := g.Chain()
	_, astray := h.Chain()
	if one == other || one == astray {
		t.Errorf("the chains are %x, %x and %x", one, other, astray)
	}
}

// TestDamagedSnapshots cuts a snapshot at every place and changes every byte of it, in make verify in four ways. The
// restore must fail and leave the state unchanged.
func TestDamagedSnapshots(t *testing.T) {
	data := snapshotOf(t, sampleFSM(t))
	f := newTestFSM(t, Options{})
	before := snapshotOf(t, f)
	mark, records := data[:len(snapshotMark)], data[len(snapshotMark):]
	refuse := func(what string, at int, damaged []byte) {
		t.Helper()
		if err := f.Restore(io.NopCloser(bytes.NewReader(damaged))); err == nil {
			t.Fatalf("a snapshot %s at %d was restored", what, at)
		}
	}
	changes := []byte{1, 2, 0x80, 0xff}
	for i := range data {
		refuse("cut", i, data[:i])
		for _, change := range verify.Scale(changes[i%len(changes):][:1], changes) {
			damaged := bytes.Clone(data)
			damaged[i] ^= change
			refuse("changed", i, damaged)
		}
	}
	refuse("continued", len(data), append(bytes.Clone(data), 0))
	refuse("twice", len(data), append(bytes.Clone(data), data...))
	// The length of the first record is encoded in more bytes than necessary.
	refuse("padded", 0, slices.Concat(mark, []byte{records[0] | 0x80, 0}, records[1:]))
	if !bytes.Equal(snapshotOf(t, f), before) {
		t.Error("a refused snapshot changed something")
	}
}

// TestNewerSnapshots: snapshots with unknown records or fields are refused.
func TestNewerSnapshots(t *testing.T) {
	f := sampleFSM(t)
	for name, spoil := range map[string]func(h *logv1.Header){
		"format":         func(h *logv1.Header) { h.Format = NewestFormat() + 1 },
		"no format":      func(h *logv1.Header) { h.Format = 0 },
		"field":          func(h *logv1.Header) { h.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 0x01}) },
		"no chain":       func(h *logv1.Header) { h.Chain = nil },
		"fence too low":  func(h *logv1.Header) { h.Fence = 1 },
		"a newer digest": func(h *logv1.Header) { h.Chain = append(h.Chain, 1) },
	} {
		s, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		spoil(s.(*snapshot).header)
		var out sink
		if err := s.Persist(&out); err != nil {
			t.Fatal(err)
		}
		if err := CheckSnapshot(&out); err == nil {
			t.Errorf("a snapshot with another %s was accepted", name)
		}
	}
}

// TestPersistBesideWriters: a snapshot that is written while entries are applied equals one that is written at once.
func TestPersistBesideWriters(t *testing.T) {
	f := newTestFSM(t, Options{})
	for i := range 500 {
		applyData(f, uint64(i+3), mustEncode(t, benchAllocate(i+1)))
	}
	want := snapshotOf(t, f)
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out sink
	var writers sync.WaitGroup
	started := make(chan struct{})
	writers.Go(func() {
		for i := range 2000 {
			tree := benchTree()
			tree.Trees[0].Resources[1].Unit = quota.Unit(1 + i%3)
			applyData(f, uint64(i+600), mustEncode(t, quota.Release{ID: benchAllocate(i % 500).ID}, tree,
				benchAllocate(i+1000)))
			if i == 10 {
				close(started)
			}
		}
	})
	<-started
	if err := s.Persist(&out); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	if !bytes.Equal(out.Bytes(), want) {
		t.Error("the snapshot shows what came after it")
	}
}

type brokenSink struct {
	sink
	cancel error
}

var errDiskFull = errors.New("the disk is full")

func (s *brokenSink) Write([]byte) (int, error) { return 0, errDiskFull }
func (s *brokenSink) Cancel() error             { s.cancelled = true; return s.cancel }

func TestPersistCancels(t *testing.T) {
	for _, cancel := range []error{nil, errors.New("no")} {
		s, err := newTestFSM(t, Options{}).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		broken := &brokenSink{cancel: cancel}
		if err := s.Persist(broken); !errors.Is(err, errDiskFull) || cancel != nil && !errors.Is(err, cancel) ||
			!broken.cancelled {
			t.Errorf("cancelled: %v, error: %v", broken.cancelled, err)
		}
	}
}

// FuzzRestoreSnapshot: arbitrary bytes must not make a restore panic or change a part of the state. The trailer is
// corrected so that the fuzzer gets past the digest; a restored state must satisfy the invariants, and its snapshot
// must restore to the same state.
func FuzzRestoreSnapshot(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, machine := range []*FSM{sampleFSM(f), preemptingFSM(f), itemsFSM(f), accessFSM(f), fullFSM(f)} {
		seed := snapshotOf(f, machine)
		f.Add(seed, false)
		f.Add(bodyOf(seed), true)
		for range 20 {
			changed := bodyOf(seed)
			changed[random.IntN(len(changed))] ^= byte(1 << random.IntN(8))
			f.Add(changed, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = sealed(data)
		}
		machine := New(Options{})
		empty := snapshotOf(t, machine)
		if err := machine.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
			if !bytes.Equal(snapshotOf(t, machine), empty) {
				t.Fatal("a refused snapshot changed something")
			}
			return
		}
		if err := machine.ledger.Check(); err != nil {
			t.Fatal(err)
		}
		again := snapshotOf(t, machine)
		if !bytes.Equal(snapshotOf(t, restored(t, again)), again) {
			t.Fatal("the snapshot of what was restored restores to something else")
		}
	})
}

func bodyOf(data []byte) []byte {
	trailer, _ := appendDelimited(
		nil, &logv1.Record{
			Record: &logv1.Record_Trailer{Trailer: &logv1.Trailer{Records: 1, Digest: make([]byte, 32)}},
		})
	return bytes.Clone(data[:len(data)-len(trailer)])
}

// sealed appends a valid trailer to the records that can be decoded.
func sealed(body []byte) []byte {
	records, content := uint64(0), bytes.TrimPrefix(body, []byte(snapshotMark))
	for rest := content; len(rest) > 0; records++ {
		_, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			break
		}
		rest = rest[n:]
	}
	digest := sha256.Sum256(content)
	trailer := &logv1.Trailer{Records: records, Digest: digest[:]}
	data, err := appendDelimited(bytes.Clone(body), &logv1.Record{Record: &logv1.Record_Trailer{Trailer: trailer}})
	if err != nil {
		panic(err)
	}
	return data
}

// TestUnknownFieldsInRecords adds an unknown field to each message of each record in turn; the restore must refuse
// each.
func TestUnknownFieldsInRecords(t *testing.T) {
	t.Run("first format", func(t *testing.T) { unknownFieldsInRecords(t, sampleFSM(t)) })
	t.Run("second format", func(t *testing.T) { unknownFieldsInRecords(t, preemptingFSM(t)) })
	t.Run("items", func(t *testing.T) { unknownFieldsInRecords(t, itemsFSM(t)) })
}

func unknownFieldsInRecords(t *testing.T, f *FSM) {
	t.Helper()
	body := bodyOf(snapshotOf(t, f))
	if err := CheckSnapshot(bytes.NewReader(sealed(body))); err != nil {
		t.Fatalf("the sound snapshot: %v", err)
	}
	tried := 0
	for at := len(snapshotMark); at < len(body); {
		data, n := protowire.ConsumeBytes(body[at:])
		for i, more := 0, true; more; i++ {
			var record logv1.Record
			if err := proto.Unmarshal(data, &record); err != nil {
				t.Fatal(err)
			}
			all := messages(record.ProtoReflect())
			all[i].SetUnknown([]byte{0xf8, 0x07, 0x01})
			spoiled, err := appendDelimited(bytes.Clone(body[:at]), &record)
			if err != nil {
				t.Fatal(err)
			}
			if CheckSnapshot(bytes.NewReader(sealed(append(spoiled, body[at+n:]...)))) == nil {
				t.Errorf("an unknown field in %s was passed over", all[i].Descriptor().FullName())
			}
			tried++
			more = i+1 < len(all)
		}
		at += n
	}
	if tried < 30 {
		t.Errorf("only %d messages were tried", tried)
	}
}
