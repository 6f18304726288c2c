package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// FromJSON writes a JSON value as YAML, with the keys in the order of the JSON text.
func FromJSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	root, err := jsonNode(decoder)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return encode(root)
}

// Field is a key with a text, a number, a boolean or a list of them.
type Field struct {
	Key   string
	Value any
}

// Marshal writes fields in their order as YAML.
func Marshal(fields []Field) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		var value yaml.Node
		if err := value.Encode(f.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Key, err)
		}
		root.Content = append(root.Content, textNode(f.Key), &value)
	}
	return encode(root)
}

func encode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// jsonNode reads the next value. Of the library's own reader of JSON, keys above 1,024 characters would be errors.
func jsonNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return jsonParts(decoder, v)
	case string:
		return textNode(v), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// jsonParts reads the keys and values of an object, or the values of an array, to its end.
func jsonParts(decoder *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for decoder.More() {
		part, err := jsonNode(decoder)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, part)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n, nil
}

// oldWords are texts that readers of YAML 1.1 take for a boolean, for a number of base 60, or for a key that merges.
var oldWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:y|n|yes|no|on|off|<<)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
})

// textNode is a text, in quotes if a reader could take it for something else.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	unsafe := strings.ContainsAny(text, "\t\r\n") || n.ShortTag() != "!!str" || oldWords().MatchString(text) ||
		text == "-" || strings.ContainsAny(text, "#\\") || strings.Contains(text, ": ") ||
		strings.Contains(text, "- ") ||
		strings.ContainsAny(text[:1], "*&[]{},!|>%'\"@` ?") || strings.HasSuffix(text, ":") ||
		strings.HasSuffix(text, " ")
	block := strings.Contains(text, "\n") && !strings.ContainsAny(text, "\t\r") && strings.TrimLeft(text, " \n") == text
	if unsafe && !block {
		n.Style = yaml.DoubleQuotedStyle
	}
	n.Tag = "!!str"
	return n
}
