package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// width is the longest line of a comment.
const width = 110

type module struct {
	file    protoreflect.FileDescriptor
	imports map[string]map[string]bool // names by module
	body    strings.Builder
}

// write returns the text of the module, or an error if the schema has what the mapping lacks.
func (m *module) write() (string, error) {
	for i := range m.file.Enums().Len() {
		m.writeEnum(m.file.Enums().Get(i))
	}
	for i := range m.file.Messages().Len() {
		if err := m.writeMessage(m.file.Messages().Get(i)); err != nil {
			return "", err
		}
	}
	for i := range m.file.Services().Len() {
		m.writeService(m.file.Services().Get(i))
	}
	var text strings.Builder
	text.WriteString(headerOf(string(m.file.Package())) + "\nfrom __future__ import annotations\n\n")
	for _, name := range slices.Sorted(maps.Keys(m.imports)) {
		names := slices.Sorted(maps.Keys(m.imports[name]))
		line := fmt.Sprintf("from %s import %s", name, strings.Join(names, ", "))
		if len(line) > width {
			line = fmt.Sprintf("from %s import (\n    %s,\n)", name, strings.Join(names, ",\n    "))
		}
		text.WriteString(line + "\n")
	}
	text.WriteString(m.body.String())
	return text.String(), nil
}

func (m *module) use(from, name string) string {
	if m.imports[from] == nil {
		m.imports[from] = map[string]bool{}
	}
	m.imports[from][name] = true
	if _, renamed, found := strings.Cut(name, " as "); found {
		return renamed
	}
	return name
}

func (m *module) printf(format string, args ...any) { fmt.Fprintf(&m.body, format, args...) }

func (m *module) writeDoc(descriptor protoreflect.Descriptor, indent string) {
	text := strings.TrimSpace(m.file.SourceLocations().ByDescriptor(descriptor).LeadingComments)
	if text == "" {
		return
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `'''`)
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines = append(append(lines, wrapWords(paragraph, width-len(indent))...), "")
	}
	lines = lines[:len(lines)-1]
	if len(lines) == 1 && len(lines[0])+len(indent)+6 <= width {
		end := `"""`
		if strings.HasSuffix(lines[0], `"`) {
			end = ` """`
		}
		m.printf("%s\"\"\"%s%s\n", indent, lines[0], end)
		return
	}
	m.printf("%s\"\"\"%s\n", indent, lines[0])
	for _, line := range lines[1:] {
		m.printf("%s\n", strings.TrimRight(indent+line, " "))
	}
	m.printf("%s\"\"\"\n", indent)
}

func wrapWords(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// writeEnum writes an enumeration whose values are their names in JSON, and whose members lack the common prefix.
func (m *module) writeEnum(e protoreflect.EnumDescriptor) {
	m.printf("\n\nclass %s(str, %s):\n", e.Name(), m.use("enum", "Enum"))
	m.writeDoc(e, "    ")
	prefix := strings.TrimSuffix(string(e.Values().Get(0).Name()), "UNSPECIFIED")
	for i := range e.Values().Len() {
		value := e.Values().Get(i)
		m.printf("\n    %s = %q\n", strings.TrimPrefix(string(value.Name()), prefix), value.Name())
		m.writeDoc(value, "    ")
	}
}

func (m *module) writeMessage(message protoreflect.MessageDescriptor) error {
	for i := range message.Messages().Len() {
		if !message.Messages().Get(i).IsMapEntry() {
			return fmt.Errorf("%s has a nested message, which has no Python name: move it out", message.FullName())
		}
	}
	if message.Enums().Len() > 0 {
		return fmt.Errorf("%s has a nested enum, which has no Python name: move it out", message.FullName())
	}
	m.printf("\n\n@%s\nclass %s(%s):\n", m.use("dataclasses", "dataclass"), message.Name(),
		m.use("quorate.message", "Message"))
	m.writeDoc(message, "    ")
	if message.Fields().Len() == 0 {
		m.printf("\n    pass\n")
	}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		annotation, initial, err := m.fieldType(field)
		if err != nil {
			return err
		}
		m.printf("\n    %s: %s = %s\n", fieldName(field), annotation, initial)
		m.writeDoc(field, "    ")
	}
	return nil
}

// fieldName is the name in the schema, with an underscore after those that Python reserves.
func fieldName(field protoreflect.FieldDescriptor) string {
	name := string(field.Name())
	if slices.Contains([]string{"from", "import", "class", "in", "is", "not", "or", "and", "as", "pass", "global"}, name) {
		return name + "_"
	}
	return name
}

func (m *module) fieldType(field protoreflect.FieldDescriptor) (annotation, initial string, err error) {
	list := m.use("dataclasses", "field as _field")
	switch {
	case field.IsMap():
		key, _, err := m.valueType(field.MapKey())
		if err != nil {
			return "", "", err
		}
		value, _, err := m.valueType(field.MapValue())
		return fmt.Sprintf("%s[%s, %s]", m.use("typing", "Dict"), key, value), list + "(default_factory=dict)", err
	case field.IsList():
		value, _, err := m.valueType(field)
		return fmt.Sprintf("%s[%s]", m.use("typing", "List"), value), list + "(default_factory=list)", err
	}
	annotation, initial, err = m.valueType(field)
	if field.HasPresence() {
		return m.use("typing", "Optional") + "[" + annotation + "]", "None", err
	}
	return annotation, initial, err
}

// valueType returns the type of a single value and its zero.
func (m *module) valueType(field protoreflect.FieldDescriptor) (name, zero string, err error) {
	switch field.Kind() { //nolint:exhaustive // the API has no others
	case protoreflect.StringKind:
		return "str", `""`, nil
	case protoreflect.BytesKind:
		return "bytes", `b""`, nil
	case protoreflect.BoolKind:
		return "bool", "False", nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return "int", "0", nil
	case protoreflect.EnumKind:
		name := m.typeName(field.Enum())
		return name, name + ".UNSPECIFIED", nil
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			return m.use("datetime", "datetime"), "None", nil
		case "google.protobuf.Duration":
			return m.use("datetime", "timedelta"), "None", nil
		}
		if strings.HasPrefix(string(field.Message().FullName()), "quorate.") {
			return m.typeName(field.Message()), "None", nil
		}
	}
	return "", "", fmt.Errorf("%s has a type without a Python mapping: extend tools/pythonmessages", field.FullName())
}

func (m *module) typeName(descriptor protoreflect.Descriptor) string {
	if descriptor.ParentFile() != m.file {
		file := descriptor.ParentFile()
		return m.use(string(file.Package())+"."+moduleOf(file), string(descriptor.Name()))
	}
	return string(descriptor.Name())
}

// writeService writes the unary calls and the calls that stream answers. Calls that stream requests need HTTP/2 and are
// left out.
func (m *module) writeService(service protoreflect.ServiceDescriptor) {
	m.printf("\n\nclass %s(%s):\n", service.Name(), m.use("quorate.service", "Service"))
	m.writeDoc(service, "    ")
	m.printf("\n    _NAME = %q\n", service.FullName())
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		if method.IsStreamingClient() {
			continue
		}
		input, output := m.typeName(method.Input()), m.typeName(method.Output())
		answer, timeout, call := output, "timeout: "+m.use("typing", "Optional")+"[float] = None", "_call"
		passed := ", timeout"
		if method.IsStreamingServer() {
			answer, timeout, call, passed = m.use("quorate.service", "Stream")+"["+output+"]", "", "_open", ""
		}
		args := "self, request: " + input
		if strings.HasPrefix(string(method.Name()), "List") || method.Input().Fields().Len() == 0 {
			args += " = " + input + "()" // calls change no message, so that one default serves all
		}
		if timeout != "" {
			args += ", " + timeout
		}
		m.printf("\n    def %s(\n        %s\n    ) -> %s:\n", snakeCase(string(method.Name())), args, answer)
		m.writeDoc(method, "        ")
		m.printf("        return self.%s(%q, request, %s%s)\n", call, method.Name(), output, passed)
	}
}

func snakeCase(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return strings.ToLower(out.String())
}
