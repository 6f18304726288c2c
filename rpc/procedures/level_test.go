package procedures

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// requestOfNextVersion is a message with itself in a field, a list and a map, and a field that needs feature level 2.
func requestOfNextVersion(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	type kinds = descriptorpb.FieldDescriptorProto_Type
	field := func(name string, number int32, kind kinds) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: new(name), Number: new(number), Type: kind.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	repeated := descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	text, message := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	old, added, inner, list, byName := field("old", 1, text), field("added", 2, text), field("inner", 3, message),
		field("list", 4, message), field("by_name", 5, message)
	added.Proto3Optional, added.OneofIndex = new(true), new(int32(0))
	inner.TypeName, list.TypeName, byName.TypeName = new(".next.M"), new(".next.M"),
		new(".next.M.ByNameEntry")
	list.Label, byName.Label = repeated, repeated
	value := field("value", 2, message)
	value.TypeName = new(".next.M")
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("next.proto"), Package: new("next"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: new("M"), Field: []*descriptorpb.FieldDescriptorProto{old, added, inner, list, byName},
			OneofDecl: []*descriptorpb.OneofDescriptorProto{{Name: new("_added")}},
			NestedType: []*descriptorpb.DescriptorProto{{
				Name: new("ByNameEntry"), Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, text), value},
				Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
			}},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("M")
}

// TestLevelOf: the level of a field counts wherever it is in a request, also if its value is empty.
func TestLevelOf(t *testing.T) {
	m := requestOfNextVersion(t)
	fieldLevels["next.M.added"] = 2
	defer delete(fieldLevels, "next.M.added")
	field := func(name protoreflect.Name) protoreflect.FieldDescriptor { return m.Fields().ByName(name) }
	set := func(fill func(*dynamicpb.Message)) proto.Message {
		request := dynamicpb.NewMessage(m)
		request.Set(field("old"), protoreflect.ValueOfString("x"))
		fill(request)
		return request
	}
	next := protoreflect.ValueOfMessage(set(func(r *dynamicpb.Message) {
		r.Set(field("added"), protoreflect.ValueOfString(""))
	}).ProtoReflect())
	for name, c := range map[string]struct {
		request proto.Message
		want    uint32
	}{
		"nothing new":               {set(func(*dynamicpb.Message) {}), 0},
		"a message of this version": {&quoratev1.SetLimitsRequest{Tree: "t"}, 0},
		"a field":                   {next.Message().Interface(), 2},
		"in a field":                {set(func(r *dynamicpb.Message) { r.Set(field("inner"), next) }), 2},
		"in a list":                 {set(func(r *dynamicpb.Message) { r.Mutable(field("list")).List().Append(next) }), 2},
		"in a map": {set(func(r *dynamicpb.Message) {
			r.Mutable(field("by_name")).Map().Set(protoreflect.ValueOfString("k").MapKey(), next)
		}), 2},
	} {
		if got := LevelOf(c.request); got != c.want {
			t.Errorf("%s: level %d, want %d", name, got, c.want)
		}
	}
}
