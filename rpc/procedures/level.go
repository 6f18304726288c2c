package procedures

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// LevelOf is the feature level that a request needs, by the option field_level of the fields that are set in it; 0 if
// it needs none. A server of an earlier version would leave such fields out without an error, unless the request is
// JSON.
func LevelOf(request proto.Message) uint32 { return levelOf(request.ProtoReflect()) }

func levelOf(m protoreflect.Message) uint32 {
	level := uint32(0)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		stated, _ := proto.GetExtension(f.Options(), quoratev1.E_FieldLevel).(uint32)
		level = max(level, stated, levelInside(f, v))
		return true
	})
	return level
}

func levelInside(f protoreflect.FieldDescriptor, v protoreflect.Value) uint32 {
	level := uint32(0)
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return 0
		}
		v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
			level = max(level, levelOf(value.Message()))
			return true
		})
		return level
	case f.Message() == nil:
		return 0
	case f.IsList():
		list := v.List()
		for i := range list.Len() {
			level = max(level, levelOf(list.Get(i).Message()))
		}
		return level
	}
	return levelOf(v.Message())
}

// methodLevel is the feature level that a method needs, by its option method_level; 0 if it needs none.
func methodLevel(m protoreflect.MethodDescriptor) uint32 {
	level, _ := proto.GetExtension(m.Options(), quoratev1.E_MethodLevel).(uint32)
	return level
}
