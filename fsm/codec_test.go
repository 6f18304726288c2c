package fsm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// asDecoded compares commands as the decoder returns them: empty lists are nil, and an invalid kind of limit is absent.
var asDecoded = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Transformer("kind", func(k quota.LimitKind) int { return int(min(k, quota.Advisory+1)) }),
}

func TestRoundTrip(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		commands := rapid.SliceOfN(anyCommand(), 1, 20).Draw(t, "commands")
		stamp := quota.Stamp{At: quota.Instant(rapid.Int64().Draw(t, "at")), Wall: rapid.Int64().Draw(t, "wall")}
		data, err := EncodeEntry(stamp, commands)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ownFormats.decodeEntry(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(commands, got.commands, asDecoded); diff != "" || got.stamp != stamp {
			t.Fatalf("stamp %v became %v, commands (-before +after):\n%s", stamp, got.stamp, diff)
		}
		again, err := EncodeEntry(got.stamp, got.commands)
		if err != nil || string(again) != string(data) {
			t.Fatalf("what was decoded encodes otherwise: %v", err)
		}
	})
}

func TestEncodeBounds(t *testing.T) {
	release := quota.Release{ID: "x"}
	large := quota.ApplyTrees{Meta: quota.ChangeMeta{Reason: strings.Repeat("x", MaxEntryBytes)}}
	for name, c := range map[string]struct {
		commands []quota.Command
		fails    bool
	}{
		"none":          {nil, true},
		"one":           {[]quota.Command{release}, false},
		"the most":      {repeat(release, MaxEntryCommands), false},
		"one too many":  {repeat(release, MaxEntryCommands+1), true},
		"too long":      {[]quota.Command{large}, true},
		"no valid text": {[]quota.Command{quota.Release{ID: "\xff"}}, true},
	} {
		if _, err := EncodeEntry(quota.Stamp{}, c.commands); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func repeat(c quota.Command, n int) []quota.Command {
	list := make([]quota.Command, n)
	for i := range list {
		list[i] = c
	}
	return list
}

// sampleEntry has every message of the entry format.
func sampleEntry() *logv1.Entry {
	revision := uint64(3)
	meta := quota.ChangeMeta{
		Actor: "eva", Reason: "because", RequestID: "r1", Fingerprint: "f1",
		ExpectedRevision: &revision,
	}
	limits := []quota.ResourceLimit{
		{Resource: "cpu", Limit: quota.AtMost(7)},
		{Resource: "mem", Limit: quota.NoLimit()},
		{Resource: "web", Limit: quota.Limit{}},
	}
	labels := []quota.Label{{Key: "k", Value: "v"}}
	tree := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{
			{Name: "cpu", Unit: quota.Milli},
			{Name: "mem", Unit: quota.Bytes},
			{Name: "web", Unit: quota.Count},
		},
		Nodes: []quota.NodeSpec{{Policy: "strict", Limits: limits[:2], Labels: labels}, {Path: "a"}},
	}
	entry := &logv1.Entry{Format: 1, TimeMs: 5, WallMs: 6}
	for _, c := range []quota.Command{
		quota.Allocate{ID: "i", Claims: []quota.Claim{
			{Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}}},
		}, Labels: labels},
		quota.Release{ID: "i"},
		quota.ApplyTrees{Meta: meta, Trees: []quota.TreeSpec{tree}},
		quota.SetLimits{Meta: meta, Tree: "t", Node: "a", Limits: limits},
		quota.DeleteTree{Meta: meta, Tree: "t"},
	} {
		entry.Commands = append(entry.Commands, encodeCommand(c))
	}
	return entry
}

// reservationSamples returns the commands of reservations, and those of allocations with all their fields, by name.
func reservationSamples() map[string]quota.Command {
	revision := uint64(3)
	meta := quota.ChangeMeta{
		Actor: "eva", Reason: "because", RequestID: "r1", Fingerprint: "f1",
		ExpectedRevision: &revision,
	}
	limits := []quota.ResourceLimit{
		{Resource: "cpu", Limit: quota.AtMost(7)},
		{Resource: "mem", Limit: quota.NoLimit()},
	}
	tree := quota.TreeSpec{
		Name: "t", TreeSettings: quota.TreeSettings{Forest: "f", RequireReason: true},
		Resources: []quota.Resource{{Name: "cpu", Unit: quota.Milli}, {Name: "mem", Unit: quota.Bytes}},
		Nodes: []quota.NodeSpec{{
			Policy: "open", Hard: true, Defaults: limits, Borrow: limits, Lend: limits, Applications: quota.AtMost(9),
			Principals: []quota.PrincipalLimit{{
				Users: []string{"u", "*"}, Groups: []string{"g", "*"},
				Limits: quota.Vector{{Resource: "cpu", Amount: 3}}, Applications: quota.AtMost(2), Description: "text",
			}},
		}},
		Moves: []quota.Move{{From: "a", To: "b"}},
	}
	claim := quota.Claim{
		Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}},
		Standing: quota.Standing{Priority: -1, Type: 2, Unpreemptable: true},
	}
	return map[string]quota.Command{
		"allocate": quota.Allocate{
			ID: "i", Claims: []quota.Claim{claim},
			Principal: quota.Principal{User: "u", Groups: []string{"g", "h"}, Application: "x"},
			Mode:      quota.Reserve, ReserveFor: 60_000,
		},
		"confirm": quota.Confirm{ID: "i"}, "cancel": quota.Cancel{ID: "i"}, "expire": quota.Expire{Most: 512},
		"apply-trees": quota.ApplyTrees{Meta: meta, Trees: []quota.TreeSpec{tree}, Prune: true},
		"move-node":   quota.MoveNode{Meta: meta, Tree: "t", From: "a", To: "b/c"},
		"roll-back":   quota.RollBack{Meta: meta, Revision: 7},
	}
}

func itemSamples() map[string]quota.Command {
	labels := []quota.Label{{Key: "k", Value: "v"}, {Key: "l"}}
	item := quota.ItemName{Tree: "t", Resource: "slice", Name: "slice-1"}
	updates := []quota.ItemUpdate{{Item: item, State: "dirty", Data: labels}}
	tree := quota.TreeSpec{
		Name: "t", TreeSettings: quota.TreeSettings{
			Leases: quota.LeaseSettings{Default: 1, Max: 2, Grace: 3}, Overtake: 4,
		},
		Resources: []quota.Resource{
			{Name: "lab", Unit: quota.Items, Items: &quota.ItemSpec{
				Names: []string{"a", "b"}, State: "dirty", Released: "used", Expired: "lost", TTL: 60_000,
				Turns: []quota.Turn{{From: "used", To: "free", After: 5000}}, Queueing: quota.BestEffort,
			}},
			{Name: "slice", Unit: quota.Items, Items: &quota.ItemSpec{Min: 1, Max: 3, Lifespan: 9000}},
		},
		Nodes: []quota.NodeSpec{{Policy: "open", Queueing: quota.Strict}},
	}
	picks := []quota.Pick{
		{Resource: "lab", Count: 2, State: "used", Names: []string{"a", "b"}, HeldState: "busy"},
		{Resource: "slice", Count: 1},
	}
	return map[string]quota.Command{
		"allocate": quota.Allocate{
			ID: "i", Claims: []quota.Claim{{Tree: "t", Picks: picks}}, Mode: quota.Wait,
			TTL: 60_000, WaitFor: 90_000, Keep: 5000, Priority: -3, Data: labels,
		},
		"release":      quota.Release{ID: "i", Items: []quota.ItemName{item}, ItemState: "dirty"},
		"renew":        quota.Renew{ID: "i", Fence: 7, TTL: 60_000, Data: labels, Items: updates},
		"update-items": quota.UpdateItems{Updates: updates},
		"reset-items":  quota.ResetItems{Tree: "t", Resource: "slice", State: "busy", Idle: 60_000, To: "dirty"},
		"apply-trees":  quota.ApplyTrees{Trees: []quota.TreeSpec{tree}},
	}
}

func entryOf(samples map[string]quota.Command) *logv1.Entry {
	entry := &logv1.Entry{Format: quota.FirstFormat, TimeMs: 5, WallMs: 6}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		entry.Commands = append(entry.Commands, encodeCommand(samples[name]))
	}
	return entry
}

// TestUnknownFieldsAnywhere adds an unknown field to each message of an entry in turn; the decoder must refuse each
// entry.
func TestUnknownFieldsAnywhere(t *testing.T) {
	control := func() *logv1.Entry {
		return &logv1.Entry{Format: quota.FirstFormat, RaiseLevel: quota.FirstFormat, Checkpoint: true}
	}
	t.Run("control", func(t *testing.T) { unknownFieldsAnywhere(t, control, 1) })
	t.Run("basic", func(t *testing.T) { unknownFieldsAnywhere(t, sampleEntry, 25) })
	t.Run("access", func(t *testing.T) { unknownFieldsAnywhere(t, accessEntry, 40) })
	for name, c := range map[string]struct {
		samples map[string]quota.Command
		most    int
	}{
		"reservations": {reservationSamples(), 34}, "items": {itemSamples(), 38}, "changes": {holdingChanges(), 14},
		"timed": {timedSamples(), 15},
	} {
		t.Run(name, func(t *testing.T) {
			unknownFieldsAnywhere(t, func() *logv1.Entry { return entryOf(c.samples) }, c.most)
		})
	}
}

func unknownFieldsAnywhere(t *testing.T, sample func() *logv1.Entry, most int) {
	t.Helper()
	count := len(messages(sample().ProtoReflect()))
	if count < most {
		t.Fatalf("the sample has only %d messages", count)
	}
	for i := range count {
		entry := sample()
		message := messages(entry.ProtoReflect())[i]
		message.SetUnknown(protoreflect.RawFields{0xf8, 0x07, 0x01}) // field 127 with the value 1
		data := mustMarshal(t, entry)
		if _, err := ownFormats.decodeEntry(data); err == nil {
			t.Errorf("an unknown field in %s was passed over", message.Descriptor().FullName())
		}
	}
}

// messages returns a message and all messages within it.
func messages(m protoreflect.Message) []protoreflect.Message {
	list := []protoreflect.Message{m}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				list = append(list, messages(v.List().Get(i).Message())...)
			}
		default:
			list = append(list, messages(v.Message())...)
		}
		return true
	})
	return list
}

// FuzzDecodeEntry: arbitrary bytes must not make the decoder or the ledger panic, and a decoded entry must be equal
// after it is encoded and decoded again.
func FuzzDecodeEntry(f *testing.F) {
	for _, data := range goldenEntries(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entry, err := ownFormats.decodeEntry(data)
		machine := New(Options{})
		applyData(machine, 1, data)
		if (err == nil) != (machine.Halted() == nil) {
			t.Fatalf("decoded with %v but halted with %v", err, machine.Halted())
		}
		if err != nil || len(entry.commands) > MaxEntryCommands || len(data) > MaxEntryBytes {
			return
		}
		if entry.replacement != nil {
			again, err := encodeReplacement(entry.replacement)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ownFormats.decodeEntry(again); err != nil {
				t.Fatalf("what was decoded cannot be written and read again: %v", err)
			}
			return
		}
		decoded, err := ownFormats.decodeEntry(encodedAgain(t, entry))
		if diff := cmp.Diff(entry.commands, decoded.commands, asDecoded); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
		if diff := cmp.Diff(callersOf(entry), callersOf(decoded)); diff != "" {
			t.Fatal(diff)
		}
		if decoded.level != entry.level || decoded.checkpoint != entry.checkpoint {
			t.Fatalf("level %d, checkpoint %t became %d, %t", entry.level, entry.checkpoint, decoded.level,
				decoded.checkpoint)
		}
		if err := machine.ledger.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func encodedAgain(t testing.TB, e decoded) []byte {
	t.Helper()
	var parts []Part
	runs := e.callers
	if len(runs) == 0 && len(e.commands) > 0 {
		runs = []callerRun{{commands: len(e.commands)}}
	}
	at := 0
	for _, run := range runs {
		part, err := EncodeCommands(run.caller, e.commands[at:at+run.commands])
		if err != nil {
			t.Fatal(err)
		}
		parts, at = append(parts, part), at+run.commands
	}
	if e.level > 0 {
		parts = append(parts, RaiseLevel(e.level))
	}
	if e.checkpoint {
		parts = append(parts, Checkpoint())
	}
	data, err := JoinEntry(e.stamp, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
