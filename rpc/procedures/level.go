package procedures

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// methodLevels has the feature level that a method needs, by its full name. A server does not pass a call on to a
// leader of an earlier version, which does not know the method.
var methodLevels = map[protoreflect.FullName]uint32{}

// fieldLevels has the feature level that a field of a request needs if it is set. A leader of an earlier version would
// leave it out without an error, unless the request is JSON.
var fieldLevels = map[protoreflect.FullName]uint32{}

// LevelOf is the feature level that a request needs, by the fields that are set in it; 0 if it needs none.
func LevelOf(request proto.Message) uint32 {
	if len(fieldLevels) == 0 {
		return 0
	}
	return levelOf(request.ProtoReflect())
}

func levelOf(m protoreflect.Message) uint32 {
	level := uint32(0)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		level = max(level, fieldLevels[f.FullName()], levelInside(f, v))
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
