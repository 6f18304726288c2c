package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Documents splits a text into the JSON values in it, one after the other; each is syntactically correct and has no key
// twice in one object. An error names the line.
func Documents(data []byte) ([]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var documents []json.RawMessage
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, Problems{fmt.Sprintf("line %d: not JSON: %v", lineAt(data, errorOffset(err, len(data))), err)}
		}
		if key, at := repeatedKey(document); key != "" {
			begin := int(decoder.InputOffset()) - len(document)
			return nil, Problems{fmt.Sprintf("line %d: %s is given twice in one object", lineAt(data, begin+at), key)}
		}
		documents = append(documents, document)
	}
}

// Unreadable describes an error of decoding JSON: the field, the expected type and the type that was found.
func Unreadable(err error) string {
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	value, _, _ := strings.Cut(wrong.Value, " ") // of a number, its digits follow
	what := "the value"
	if wrong.Field != "" {
		what = strconv.Quote(wrong.Field)
	}
	return fmt.Sprintf("%s must be %s, not %s", what, typeWords[wrong.Type.Kind()], valueWords[value])
}

var (
	valueWords = map[string]string{
		"string": "a string", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object",
	}
	typeWords = map[reflect.Kind]string{
		reflect.String: "a string in quotes", reflect.Bool: "true or false", reflect.Int64: "a 64-bit integer",
		reflect.Slice: "a list", reflect.Struct: "an object", reflect.Map: "an object",
	}
)

// errorOffset is where the decoder stopped; a text that is cut off stops at its end.
func errorOffset(err error, end int) int {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return end
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// repeatedKey returns the first key, in quotes, that one object of a document has twice, and its offset; empty if there
// is none.
func repeatedKey(document []byte) (string, int) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	// One set of keys for each open object, nil for an array; key is true if a key comes next.
	var open []map[string]bool
	key := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", 0 // the end: Documents has read it once already
		}
		switch delim, _ := token.(json.Delim); delim {
		case '{':
			open, key = append(open, map[string]bool{}), true
			continue
		case '[':
			open, key = append(open, nil), false
			continue
		case '}', ']':
			open = open[:len(open)-1]
		default:
			if key {
				keys, name := open[len(open)-1], fmt.Sprintf("%q", token)
				if keys[name] {
					return name, int(decoder.InputOffset())
				}
				keys[name], key = true, false
				continue
			}
		}
		key = len(open) > 0 && open[len(open)-1] != nil
	}
}
