package fsm

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// lastOfFirst is the highest number of a field that the first format had, for each message that has got more since.
// Messages that it did not have at all are at 0.
var lastOfFirst = map[protoreflect.Name]protoreflect.FieldNumber{
	"Command": 5, "Claim": 3, "Allocate": 3, "Node": 4, "Tree": 3, "ApplyTrees": 2,
	"Principal": 0, "PrincipalLimit": 0, "Move": 0, "Confirm": 0, "Cancel": 0, "Expire": 0,
	"MoveNode": 0, "SetMaintenance": 0, "RollBack": 0,
}

// isOfFirst looks at every field of a message: did the first format have it?
func isOfFirst(m protoreflect.Message) bool {
	first := true
	for _, part := range messages(m) {
		last, grown := lastOfFirst[part.Descriptor().Name()]
		part.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			first = first && (!grown || field.Number() <= last)
			return first
		})
		if n, ok := part.Interface().(*logv1.Node); ok && n.GetPolicy() != "" && n.GetPolicy() != "open" && n.GetPolicy() != "strict" {
			first = false
		}
	}
	return first
}

// TestFormatOf: a command needs the second format exactly if its encoding has something that the first did not.
func TestFormatOf(t *testing.T) {
	check := func(t rapid.TB, c quota.Command) {
		want := secondFormat
		if isOfFirst(encodeCommand(c).ProtoReflect()) {
			want = firstFormat
		}
		if got := formatOf(c); got != want {
			t.Fatalf("%T %+v is of format %d, want %d", c, c, got, want)
		}
	}
	for _, c := range secondSamples() {
		check(t, c)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, quotatest.AllCommands().Draw(t, "command")) })
}

// TestNewestPartDecides: an entry has the newest format of its parts, and no newer one.
func TestNewestPartDecides(t *testing.T) {
	first, second := quota.Release{ID: "x"}, quota.Confirm{ID: "x"}
	for _, c := range []struct {
		parts [][]quota.Command
		want  uint32
	}{
		{[][]quota.Command{{first}, {first, first}}, 1},
		{[][]quota.Command{{first, second}}, 2},
		{[][]quota.Command{{first}, {second}, {first}}, 2},
	} {
		var parts []Part
		for _, commands := range c.parts {
			part, err := EncodeCommands(commands)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		data, err := JoinEntry(quota.Stamp{}, parts...)
		if err != nil {
			t.Fatal(err)
		}
		var entry logv1.Entry
		if err := proto.Unmarshal(data, &entry); err != nil || entry.GetFormat() != c.want {
			t.Errorf("%v make an entry of format %d, %v; want %d", c.parts, entry.GetFormat(), err, c.want)
		}
	}
}

// TestFormatIsRemembered: once an entry of the second format was applied, that is known, also after a restore. A denial, or
// a revision that can be taken back, makes only the snapshot new.
func TestFormatIsRemembered(t *testing.T) {
	f := New(Options{})
	look := func(when string, format, ofSnapshot uint32) {
		t.Helper()
		s, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(*snapshot).header.GetFormat(); got != ofSnapshot || f.Format() != format {
			t.Errorf("%s: entries of format %d, snapshots of %d; want %d and %d", when, f.Format(), got, format, ofSnapshot)
		}
		g := restored(t, snapshotOf(t, f))
		if g.Format() != f.Format() || !bytes.Equal(snapshotOf(t, g), snapshotOf(t, f)) {
			t.Errorf("%s: a restore knows format %d, want %d", when, g.Format(), f.Format())
		}
	}
	applyData(f, 1, mustEncode(t, quota.Release{ID: "nobody"}))
	look("at first", 1, 1)
	applyData(f, 2, mustEncode(t, benchTree()))
	look("after a change of configuration", 1, 2)
	f = restored(t, readGolden(t, "snapshot-v1.bin"))
	look("after a restore of the first format", 1, 1)
	huge := benchAllocate(1)
	huge.Claims[0] = quota.Claim{Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: quota.MaxAmount}}}
	applyData(f, 5, mustEncode(t, huge))
	look("after a denial", 1, 2)
	applyData(f, 6, mustEncode(t, quota.Confirm{ID: "nobody"}))
	look("after a new command", 2, 2)
}
