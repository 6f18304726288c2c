package main

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// completeSchemas corrects the schemas of messages and enums.
func (d *document) completeSchemas() error {
	for _, name := range keysOf(d.schemas) {
		schema := lookUp(d.schemas, name)
		found, err := d.files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			continue // one of the converter's own, which base.yaml replaces
		}
		switch described := found.(type) {
		case protoreflect.MessageDescriptor:
			if described.ParentFile().Package() == "google.protobuf" {
				continue // base.yaml has them
			}
			if err := completeMessage(schema, described); err != nil {
				return err
			}
		case protoreflect.EnumDescriptor:
			describeValues(schema, described)
		}
	}
	return nil
}

func completeMessage(schema *yaml.Node, message protoreflect.MessageDescriptor) error {
	removeKeys(schema, "title")
	if err := flattenOneof(schema, message); err != nil {
		return err
	}
	properties := lookUp(schema, "properties")
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		property := lookUp(properties, field.JSONName())
		if property == nil {
			return fmt.Errorf("%s lacks its field %s", message.FullName(), field.Name())
		}
		completeProperty(property, field)
	}
	return nil
}

// flattenOneof moves the properties of a oneof to those of the message, which additionalProperties looks at. Exactly
// one is set in all oneofs of this API, in requests and in answers.
func flattenOneof(schema *yaml.Node, message protoreflect.MessageDescriptor) error {
	var group protoreflect.OneofDescriptor
	for i := range message.Oneofs().Len() {
		oneof := message.Oneofs().Get(i)
		if oneof.IsSynthetic() {
			continue
		}
		if group != nil {
			return fmt.Errorf("%s has two oneofs: the plugin openapi supports one", message.FullName())
		}
		group = oneof
	}
	if group == nil {
		return nil
	}
	found := map[string]*yaml.Node{}
	collectProperties(schema, found)
	properties, choices := mapping(), list()
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if found[field.JSONName()] == nil {
			return fmt.Errorf("%s lacks its field %s", message.FullName(), field.Name())
		}
		setKey(properties, field.JSONName(), found[field.JSONName()])
		if field.ContainingOneof() == group {
			choices.Content = append(choices.Content, mapping(text("required"), words(field.JSONName())))
		}
	}
	removeKeys(schema, "oneOf", "anyOf", "allOf")
	setKey(schema, "properties", properties)
	setKey(schema, "oneOf", choices)
	return nil
}

func collectProperties(schema *yaml.Node, found map[string]*yaml.Node) {
	properties := lookUp(schema, "properties")
	for i, name := range keysOf(properties) {
		found[name] = properties.Content[2*i+1]
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		if parts := lookUp(schema, key); parts != nil {
			for _, part := range parts.Content {
				collectProperties(part, found)
			}
		}
	}
}

func completeProperty(property *yaml.Node, field protoreflect.FieldDescriptor) {
	removeKeys(property, "title")
	correctValue(property, field)
	if items := lookUp(property, "items"); items != nil {
		correctValue(items, field)
	}
	if field.IsMap() {
		removeKeys(lookUp(property, "additionalProperties"), "title")
		correctValue(lookUp(property, "additionalProperties"), field.MapValue())
		if names := lookUp(property, "propertyNames"); names != nil {
			correctValue(names, field.MapKey())
		}
	}
}

func correctValue(value *yaml.Node, field protoreflect.FieldDescriptor) {
	sayBytes(value)
	if constant := lookUp(value, "const"); constant != nil && field.Kind() == protoreflect.BoolKind {
		constant.Tag, constant.Style = "!!bool", 0
	}
	if field.IsList() && lookUp(value, "items") != nil || field.IsMap() {
		return
	}
	switch field.Kind() {
	case protoreflect.Int64Kind:
		referToNumber(value, "Int64")
	case protoreflect.Uint64Kind:
		referToNumber(value, "Uint64")
	case protoreflect.BoolKind, protoreflect.Int32Kind, protoreflect.Uint32Kind:
		if types := lookUp(value, "type"); types != nil && types.Kind == yaml.SequenceNode {
			setKey(value, "type", types.Content[0]) // null is not answered
		}
	}
}

// referToNumber says that a value is one of 64 bits. Bounds are those of numbers only in JSON Schema, and stay.
func referToNumber(value *yaml.Node, name string) {
	removeKeys(value, "type", "format")
	value.Content = append([]*yaml.Node{text("$ref"), text(schemaPrefix + name)}, value.Content...)
}

// byteRule is how the converter writes the rules that count bytes, for which OpenAPI has no word.
var byteRule = regexp.MustCompile(`\n?string\.(max|min|)_?(?:len_)?bytes = (\d+)\n?`)

// sayBytes writes rules that count bytes as sentences.
func sayBytes(value *yaml.Node) {
	description := lookUp(value, "description")
	if description == nil {
		return
	}
	said := byteRule.ReplaceAllStringFunc(description.Value, func(rule string) string {
		parts := byteRule.FindStringSubmatch(rule)
		sentence := map[string]string{"max": "At most ", "min": "At least ", "": "Exactly "}[parts[1]] + parts[2] + " bytes."
		return "\n" + sentence
	})
	description.Value = strings.TrimSpace(said)
	if strings.Contains(description.Value, "\n") {
		description.Style = yaml.LiteralStyle
	} else {
		description.Style = 0
	}
}

func describeValues(schema *yaml.Node, enum protoreflect.EnumDescriptor) {
	removeKeys(schema, "title")
	lines := []string{}
	if description := lookUp(schema, "description"); description != nil {
		lines = append(lines, description.Value, "")
	}
	for i := range enum.Values().Len() {
		value := enum.Values().Get(i)
		comment := strings.TrimSpace(enum.ParentFile().SourceLocations().ByDescriptor(value).LeadingComments)
		lines = append(lines, fmt.Sprintf("- `%s`: %s", value.Name(), strings.ReplaceAll(comment, "\n", "\n  ")))
	}
	described := text(strings.Join(lines, "\n"))
	described.Style = yaml.LiteralStyle
	setKey(schema, "description", described)
}
