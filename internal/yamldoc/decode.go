package yamldoc

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Decode fills the fields of a struct by their yaml tags. Keys without a field and keys that are there twice are
// errors; a key with nothing after it leaves its field alone. A number may be in quotes. Errors are of type *Error.
func (d *Document) Decode(out any) error {
	if d.Root == nil || IsNull(d.Root) {
		return nil
	}
	return decode(d.Root, reflect.ValueOf(out).Elem())
}

func decode(n *yaml.Node, out reflect.Value) error {
	switch kind := out.Kind(); {
	case IsNull(n):
		return nil
	case kind == reflect.Pointer:
		out.Set(reflect.New(out.Type().Elem()))
		return decode(n, out.Elem())
	case kind == reflect.Struct:
		return decodeStruct(n, out)
	case kind == reflect.Slice:
		return decodeSlice(n, out)
	case n.Kind != yaml.ScalarNode:
		return ErrorAt(n, "this must be %s, not %s", typeName(out.Type()), nodeKind(n))
	}
	plain := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
	if out.Kind() == reflect.String || out.Kind() == reflect.Bool {
		plain = n
	}
	if !fits(plain, out.Type()) || plain.Decode(out.Addr().Interface()) != nil {
		return ErrorAt(n, "%.40q should be %s", n.Value, typeName(out.Type()))
	}
	return nil
}

// fits refuses what the library converts although it loses something: 1.5 to 1, and yes to true.
func fits(n *yaml.Node, to reflect.Type) bool {
	tag := n.ShortTag()
	switch kind := to.Kind(); {
	case to == reflect.TypeFor[time.Duration](), kind == reflect.String:
		return true
	case kind == reflect.Bool:
		return tag == "!!bool"
	case kind == reflect.Float64:
		return tag == "!!float" || tag == "!!int"
	default:
		return tag == "!!int"
	}
}

func decodeStruct(n *yaml.Node, out reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return ErrorAt(n, "this must be a map of keys and values, not %s", nodeKind(n))
	}
	fields := map[string]reflect.Value{}
	for i := range out.NumField() {
		if key, _, _ := strings.Cut(out.Type().Field(i).Tag.Get("yaml"), ","); key != "" {
			fields[key] = out.Field(i)
		}
	}
	var problem *Error
	for _, e := range Entries(n, func(err *Error) {
		if problem == nil {
			problem = err
		}
	}) {
		field, known := fields[e.Key.Value]
		if !known {
			return ErrorAt(e.Key, "unknown field %q", e.Key.Value)
		}
		if err := decode(e.Value, field); err != nil {
			return err
		}
	}
	if problem != nil {
		return problem
	}
	return nil
}

func decodeSlice(n *yaml.Node, out reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return ErrorAt(n, "this must be a list, not %s", nodeKind(n))
	}
	list := reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		if err := decode(Target(item), list.Index(i)); err != nil {
			return err
		}
	}
	out.Set(list)
	return nil
}

func nodeKind(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "a map"
	}
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

func typeName(t reflect.Type) string {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration, such as 90s"
	case kind == reflect.String:
		return "a text"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}
