package fsm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
)

// TestRecordsKeepEveryField: converting a record to the ledger's types and back loses no field.
func TestRecordsKeepEveryField(t *testing.T) {
	tree, revision, ended, event := &logv1.TreeRecord{}, &logv1.RevisionRecord{}, &logv1.AllocationRecord{},
		&logv1.EventRecord{}
	for _, m := range []protoreflect.ProtoMessage{tree, revision, ended, event} {
		complete(m.ProtoReflect())
	}
	tree.Tree.Moves = nil // these fields occur only in commands
	event.Kind = 1        // set only in denials
	for name, diff := range map[string]string{
		"tree":       cmp.Diff(tree, encodeTreeImage(decodeTreeImage(tree)), protocmp.Transform()),
		"revision":   cmp.Diff(revision, encodeRevision(decodeRevision(revision)), protocmp.Transform()),
		"allocation": cmp.Diff(ended, encodeAllocation(decodeAllocation(ended, true)), protocmp.Transform()),
		"event":      cmp.Diff(event, encodeEvent(decodeEvent(event)), protocmp.Transform()),
	} {
		if diff != "" {
			t.Errorf("the record of a %s (-before +after):\n%s", name, diff)
		}
	}
}

// complete sets every field of a message and of the messages in it. Numbers are 3, which is a valid value of every
// enum.
func complete(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList():
			list := m.Mutable(field).List()
			element := list.NewElement()
			if field.Message() != nil {
				complete(element.Message())
			} else {
				element = scalars[field.Kind()]
			}
			list.Append(element)
		case field.Message() != nil:
			complete(m.Mutable(field).Message())
		default:
			m.Set(field, scalars[field.Kind()])
		}
	}
}

var scalars = map[protoreflect.Kind]protoreflect.Value{
	protoreflect.StringKind: protoreflect.ValueOfString("s"),
	protoreflect.BytesKind:  protoreflect.ValueOfBytes([]byte("b")),
	protoreflect.BoolKind:   protoreflect.ValueOfBool(true), protoreflect.Uint32Kind: protoreflect.ValueOfUint32(3),
	protoreflect.Uint64Kind: protoreflect.ValueOfUint64(3), protoreflect.Int64Kind: protoreflect.ValueOfInt64(3),
	protoreflect.Sint64Kind: protoreflect.ValueOfInt64(3),
}
