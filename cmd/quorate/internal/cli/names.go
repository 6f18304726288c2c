package cli

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var errNoNames = errors.New("this answer has no names: use -o json with --jq")

func nameLines(names []string) ([]byte, error) {
	if names == nil {
		return nil, errNoNames
	}
	var text bytes.Buffer
	for _, name := range names {
		text.WriteString(Printable(name) + "\n")
	}
	return text.Bytes(), nil
}

// listField is the JSON name of the first field of an answer that is a list of messages; empty if it has none.
func listField(answer proto.Message) string {
	if list := firstField(answer, protoreflect.FieldDescriptor.IsList); list != nil {
		return list.JSONName()
	}
	return ""
}

// firstField returns the first field with messages that matches, by the order of the schema; nil if there is none.
func firstField(
	answer proto.Message, matches func(protoreflect.FieldDescriptor) bool,
) protoreflect.FieldDescriptor {
	fields := answer.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); field.Kind() == protoreflect.MessageKind && !field.IsMap() && matches(field) {
			return field
		}
	}
	return nil
}

// namesOf are the names of the elements of a list, or that of the thing that an answer is about; nil if the schema
// gives them none. A list without elements has names, but none to print.
func (c *Env) namesOf(answer proto.Message) []string {
	if list := firstField(answer, protoreflect.FieldDescriptor.IsList); list != nil {
		if !isNamed(list.Message()) {
			return nil
		}
		elements, names := answer.ProtoReflect().Get(list).List(), []string{}
		for i := range elements.Len() {
			names = append(names, c.nameOf(elements.Get(i).Message()))
		}
		return names
	}
	one := firstField(answer, func(f protoreflect.FieldDescriptor) bool { return isNamed(f.Message()) })
	if one == nil || !answer.ProtoReflect().Has(one) {
		return nil
	}
	return []string{c.nameOf(answer.ProtoReflect().Get(one).Message())}
}

// nameFields are the fields that can name a message, the best first. What has a tree and a node is named by both.
var nameFields = []protoreflect.Name{"id", "name", "revision", "user", "allocation"}

func isNamed(message protoreflect.MessageDescriptor) bool {
	fields := message.Fields()
	for _, name := range nameFields {
		if fields.ByName(name) != nil {
			return true
		}
	}
	return fields.ByName("tree") != nil && fields.ByName("node") != nil
}

// nameOf writes the name of a message of which isNamed is true, as commands take it: an item as TREE:RESOURCE:NAME, a
// node as TREE:node/path.
func (c *Env) nameOf(message protoreflect.Message) string {
	fields := message.Descriptor().Fields()
	text := func(name protoreflect.Name) string {
		field := fields.ByName(name)
		if field == nil {
			return ""
		}
		if field.Kind() == protoreflect.MessageKind {
			return c.nameOf(message.Get(field).Message())
		}
		return message.Get(field).String()
	}
	if tree, resource, name := text("tree"), text("resource"), text("name"); tree != "" && resource != "" && name != "" {
		return tree + ":" + resource + ":" + name
	}
	for _, name := range nameFields {
		if fields.ByName(name) != nil && name == "id" {
			return c.idText(text("namespace"), text(name))
		}
		if fields.ByName(name) != nil {
			return text(name)
		}
	}
	return PlaceOf(text("tree"), text("node")).String()
}
