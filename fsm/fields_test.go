package fsm

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
)

// filled returns a message with every field set: 1, "x", true, and one element in each list.
func filled(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsList():
			list := m.Mutable(field).List()
			if field.Message() == nil {
				list.Append(one(field))
				continue
			}
			filled(list.AppendMutable().Message())
		case field.Message() != nil:
			filled(m.Mutable(field).Message())
		default:
			m.Set(field, one(field))
		}
	}
}

func one(field protoreflect.FieldDescriptor) protoreflect.Value {
	values := map[protoreflect.Kind]protoreflect.Value{
		protoreflect.StringKind: protoreflect.ValueOfString("x"),
		protoreflect.BytesKind:  protoreflect.ValueOfBytes(bytes.Repeat([]byte("x"), bytesIn(field))),
		protoreflect.BoolKind:   protoreflect.ValueOfBool(true), protoreflect.Uint32Kind: protoreflect.ValueOfUint32(1),
		protoreflect.Uint64Kind: protoreflect.ValueOfUint64(1), protoreflect.Int64Kind: protoreflect.ValueOfInt64(1),
		protoreflect.Sint64Kind: protoreflect.ValueOfInt64(1),
	}
	return values[field.Kind()] // other kinds panic, so that no field stays unset
}

// bytesIn is a length that a field of bytes may have.
func bytesIn(field protoreflect.FieldDescriptor) int {
	switch field.Name() {
	case "id", "old":
		return len(access.TokenID{})
	case "hash", "secret", "spent":
		return len(access.NewToken{}.Hash)
	case "credential":
		return len(access.Caller{}.Credential)
	}
	return 1
}

// alternatives visits a filled message once for each member of its oneof.
func alternatives(m proto.Message, visit func(name protoreflect.Name, m proto.Message)) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		part := proto.Clone(m)
		filled(part.ProtoReflect().Mutable(fields.Get(i)).Message())
		visit(fields.Get(i).Name(), part)
	}
}

// TestEveryFieldOfACommandIsReadAndWritten decodes and encodes commands with all fields set; a field that the codec
// lacks would be lost.
func TestEveryFieldOfACommandIsReadAndWritten(t *testing.T) {
	alternatives(&logv1.Command{}, func(name protoreflect.Name, m proto.Message) {
		command, ok := m.(*logv1.Command)
		if !ok {
			t.Fatal(name)
		}
		read, err := decodeCommand(command)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := encodeCommand(read); !proto.Equal(command, again) {
			t.Errorf("%s was\n%v and became\n%v", name, command, again)
		}
	})
}

// TestEveryFieldOfAChangeOfAccessIsReadAndWritten does the same for each kind of change.
func TestEveryFieldOfAChangeOfAccessIsReadAndWritten(t *testing.T) {
	fields := (&logv1.ChangeAccess{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() == nil {
			continue
		}
		change := &logv1.ChangeAccess{Reason: "x"}
		filled(change.ProtoReflect().Mutable(field).Message())
		read, err := decodeChangeAccess(change)
		if err != nil {
			t.Fatalf("%s: %v", field.Name(), err)
		}
		again := encodeCommand(read).GetChangeAccess()
		if !proto.Equal(change, again) {
			t.Errorf("%s was\n%v and became\n%v", field.Name(), change, again)
		}
	}
}

// TestEveryFieldOfARecordIsReadAndWritten does the same for snapshot records.
func TestEveryFieldOfARecordIsReadAndWritten(t *testing.T) {
	alternatives(&logv1.Record{}, func(name protoreflect.Name, m proto.Message) {
		record, ok := m.(*logv1.Record)
		if !ok {
			t.Fatal(name)
		}
		if again := rewritten(record); !proto.Equal(record, again) {
			t.Errorf("%s was\n%v and became\n%v", name, record, again)
		}
	})
}

// rewritten decodes and encodes a record. Header and trailer have tests of their own.
func rewritten(r *logv1.Record) *logv1.Record {
	switch part := r.GetRecord().(type) {
	case *logv1.Record_Tree:
		part.Tree.Tree.Moves = nil // these fields are not part of the configuration
		return &logv1.Record{Record: &logv1.Record_Tree{Tree: encodeTreeImage(decodeTreeImage(part.Tree))}}
	case *logv1.Record_Revision:
		return &logv1.Record{Record: &logv1.Record_Revision{Revision: encodeRevision(decodeRevision(part.Revision))}}
	case *logv1.Record_Item:
		return &logv1.Record{Record: &logv1.Record_Item{Item: encodeItem(decodeItem(part.Item))}}
	case *logv1.Record_Held:
		part.Held.EndedMs, part.Held.EndedWallMs = 0, 0
		return &logv1.Record{Record: &logv1.Record_Held{Held: encodeAllocation(decodeAllocation(part.Held, false))}}
	case *logv1.Record_Ended:
		return &logv1.Record{Record: &logv1.Record_Ended{Ended: encodeAllocation(decodeAllocation(part.Ended, true))}}
	case *logv1.Record_Waiting:
		part.Waiting.Allocation.EndedMs, part.Waiting.Allocation.EndedWallMs = 0, 0
		return &logv1.Record{Record: &logv1.Record_Waiting{Waiting: encodeWaiting(decodeWaiting(part.Waiting))}}
	case *logv1.Record_Account:
		return &logv1.Record{Record: &logv1.Record_Account{Account: encodeAccount(decodeAccount(part.Account))}}
	case *logv1.Record_Refused:
		return &logv1.Record{Record: &logv1.Record_Refused{Refused: encodeRefused(decodeRefused(part.Refused))}}
	case *logv1.Record_Token:
		token, err := decodeToken(part.Token)
		if err != nil {
			return nil
		}
		return &logv1.Record{Record: &logv1.Record_Token{Token: encodeToken(token)}}
	case *logv1.Record_Access:
		again := proto.CloneOf(part.Access) // but for the section compared by TestBooksSurviveSnapshots
		again.Section = encodeSection(decodeSection(part.Access.GetSection()))
		return &logv1.Record{Record: &logv1.Record_Access{Access: again}}
	case *logv1.Record_ScheduledLimit:
		return &logv1.Record{Record: &logv1.Record_ScheduledLimit{
			ScheduledLimit: encodeScheduledImage(decodeScheduledImage(part.ScheduledLimit)),
		}}
	case *logv1.Record_Event:
		return &logv1.Record{Record: &logv1.Record_Event{Event: encodeEvent(decodeEvent(part.Event))}}
	}
	return r
}
