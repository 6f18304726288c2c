package fsm

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// lastOf has the highest field number in each format, from the first on, for each message with fields that were added
// later. It is 0 for messages that a format does not have.
var lastOf = map[protoreflect.Name][]protoreflect.FieldNumber{
	"Command": {5, 11, 14, 14, 14, 14, 20, 23},
	"Claim":   {3, 6, 7, 7, 7, 7, 7, 7}, "Allocate": {3, 6, 11, 11, 11, 11, 11, 11},
	"Node": {4, 11, 12, 12, 12, 12, 14, 14}, "Tree": {3, 7, 9, 9, 9, 9, 11},
	"ApplyTrees": {2, 3, 3, 3, 3, 5},
	"Principal":  {0}, "PrincipalLimit": {0}, "Move": {0}, "Confirm": {0}, "Cancel": {0}, "Expire": {0},
	"MoveNode": {0}, "SetMaintenance": {0}, "RollBack": {0},
	"Release": {1, 1}, "Resource": {2, 2}, "Pick": {0, 0}, "ItemName": {0, 0}, "ItemUpdate": {0, 0}, "Renew": {0, 0},
	"UpdateItems": {0, 0},
	"ResetItems":  {0, 0}, "ItemSpec": {0, 0, 10, 10, 10, 10, 10}, "Turn": {0, 0}, "Leases": {0, 0},
	"Policy": {0, 0, 0, 0, 0}, "AmountRange": {0, 0, 0, 0, 0, 0, 0, 0}, "ClaimList": {0, 0, 0, 0, 0, 0, 0, 0},
	"Resize": {0, 0, 0, 0, 0, 0, 0, 4},
}

// formatOfMessage returns the first format that has all fields that are set in a message.
func formatOfMessage(m protoreflect.Message) uint32 {
	format := firstFormat
	for _, part := range messages(m) {
		last := lastOf[part.Descriptor().Name()]
		part.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			for before, number := range last {
				if field.Number() > number {
					format = max(format, firstFormat+uint32(before)+1)
				}
			}
			return true
		})
		format = max(format, formatOfNumbers(part.Interface()))
	}
	return format
}

// formatOfNumbers returns the format that values need which were added without a new field.
func formatOfNumbers(m proto.Message) uint32 {
	switch m := m.(type) {
	case *logv1.Node:
		if m.GetPolicy() != "" && m.GetPolicy() != "open" && m.GetPolicy() != "strict" {
			return secondFormat
		}
	case *logv1.Resource:
		if m.GetUnit() == 4 {
			return thirdFormat
		}
	case *logv1.Tree:
		if len(m.GetResources()) > 64 {
			return thirdFormat
		}
	case *logv1.Allocate:
		if m.GetMode() == 3 {
			return thirdFormat
		}
	case *logv1.Limit:
		if m.GetKind() == 4 {
			return ninthFormat
		}
	}
	return firstFormat
}

// TestFormatOf: a command needs a format exactly if its encoding has a field or value that earlier formats lack.
func TestFormatOf(t *testing.T) {
	check := func(t rapid.TB, c quota.Command) {
		want := formatOfMessage(encodeCommand(c).ProtoReflect())
		if got := formatOf(c); got != want {
			t.Fatalf("%T %+v is of format %d, want %d", c, c, got, want)
		}
	}
	for _, samples := range []map[string]quota.Command{secondSamples(), thirdSamples()} {
		for _, c := range samples {
			check(t, c)
		}
	}
	wide := quota.ApplyTrees{Trees: []quota.TreeSpec{{Name: "t", Resources: make([]quota.Resource, 65)}}}
	check(t, wide)
	for _, leaf := range leaves((&logv1.Command{}).ProtoReflect()) {
		command, _ := leaf.Interface().(*logv1.Command)
		c, err := decodeCommand(command)
		if change := command.GetChangeAccess(); change != nil && change.GetChange() == nil {
			continue // a reason without a change is not a command
		}
		if err != nil {
			t.Fatal(err)
		}
		check(t, c)
	}
	verify.Check(t, func(t *rapid.T) { check(t, anyCommand().Draw(t, "command")) })
}

// leaves returns messages of a type with a single field set, one for every field at every depth.
func leaves(of protoreflect.Message) []protoreflect.Message {
	var list []protoreflect.Message
	fields := of.Descriptor().Fields()
	for i := range fields.Len() {
		field, m := fields.Get(i), of.New()
		switch {
		case field.Message() == nil && field.IsList():
			m.Mutable(field).List().Append(one(field))
			list = append(list, m)
		case field.Message() == nil:
			m.Set(field, one(field))
			list = append(list, m)
		case field.IsList():
			for _, part := range leaves(m.Mutable(field).List().NewElement().Message()) {
				m := of.New()
				m.Mutable(field).List().Append(protoreflect.ValueOfMessage(part))
				list = append(list, m)
			}
		default:
			for _, part := range leaves(m.NewField(field).Message()) {
				m := of.New()
				m.Set(field, protoreflect.ValueOfMessage(part))
				list = append(list, m)
			}
		}
	}
	return list
}

// TestNewestPartDecides: the format of an entry is the newest format that one of its parts needs.
func TestNewestPartDecides(t *testing.T) {
	first, second, third := quota.Release{ID: "x"}, quota.Confirm{ID: "x"}, quota.Renew{ID: "x"}
	for _, c := range []struct {
		parts [][]quota.Command
		want  uint32
	}{
		{[][]quota.Command{{first}, {first, first}}, 1},
		{[][]quota.Command{{first, second}}, 2},
		{[][]quota.Command{{first}, {second}, {first}}, 2},
		{[][]quota.Command{{first}, {third}, {second}}, 3},
	} {
		var parts []Part
		for _, commands := range c.parts {
			part, err := EncodeCommands(nil, commands)
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

// TestFormatIsRemembered: the format of applied entries is remembered, also after a restore. A denial or a revision
// that can be rolled back raises only the format of snapshots.
func TestFormatIsRemembered(t *testing.T) {
	f := New(Options{})
	look := func(when string, format, ofSnapshot uint32) {
		t.Helper()
		s, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(*snapshot).header.GetFormat(); got != ofSnapshot || f.Format() != format {
			t.Errorf("%s: entries of format %d, snapshots of %d; want %d and %d", when, f.Format(), got,
				format, ofSnapshot)
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
	huge.Claims[0] = quota.Claim{
		Tree: "t", Node: "a",
		Amounts: quota.Vector{{Resource: "cpu", Amount: quota.MaxAmount}},
	}
	applyData(f, 5, mustEncode(t, huge))
	look("after a denial", 1, 2)
	applyData(f, 6, mustEncode(t, quota.Confirm{ID: "nobody"}))
	look("after a new command", 2, 2)
}
