package compat

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// YAML reads the one document of a YAML text, with the lines of its parts; nil if it is empty.
func YAML(data []byte) (*yaml.Node, error) {
	if err := CheckSize(data); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // nothing was written, and nothing is wrong with that
	} else if err != nil {
		return nil, Problems{fmt.Sprintf("not YAML: %v", err)}
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, Problems{fmt.Sprintf("line %d: a second document begins; a file holds one", second.Line)}
	} else if !errors.Is(err, io.EOF) {
		return nil, Problems{fmt.Sprintf("not YAML: %v", err)}
	}
	if n := aliases(&document); n > maxAliases {
		return nil, Problems{fmt.Sprintf("the text has %d aliases (*name); up to %d are read: write the values out",
			n, maxAliases)}
	}
	return document.Content[0], nil
}

// maxAliases bounds the work that a small text can ask for by naming a large part of itself again and again.
const maxAliases = 1000

func aliases(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return 1
	}
	n := 0
	for _, part := range node.Content {
		n += aliases(part)
	}
	return n
}

// Pair is a key of a YAML map with its value.
type Pair struct {
	Key   string
	Line  int
	Value *yaml.Node
}

// Pairs lists the keys of a map in their order, and complains about one that is there twice, is no text, or merges.
func (p *Problems) Pairs(what string, node *yaml.Node) []Pair {
	node = Target(node)
	if node.Kind != yaml.MappingNode {
		p.Add("line %d: %s is not a map of keys and values", node.Line, what)
		return nil
	}
	var pairs []Pair
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := Target(node.Content[i]), Target(node.Content[i+1])
		line, again := lines[key.Value]
		switch {
		case key.Tag == "!!merge":
			p.Add("line %d: %s: merging (<<) is not read: write the keys out", key.Line, what)
		case key.Kind != yaml.ScalarNode:
			p.Add("line %d: %s: a key is a word", key.Line, what)
		case again:
			p.Add("line %d: %s: %q is here twice: it is already in line %d", key.Line, what, key.Value, line)
		default:
			lines[key.Value] = key.Line
			pairs = append(pairs, Pair{Key: key.Value, Line: key.Line, Value: value})
		}
	}
	return pairs
}

// Items lists the parts of a list.
func (p *Problems) Items(what string, node *yaml.Node) []*yaml.Node {
	node = Target(node)
	if node.Kind != yaml.SequenceNode {
		p.Add("line %d: %s is not a list", node.Line, what)
		return nil
	}
	return node.Content
}

// Text reads a value that YAML takes for a text.
func (p *Problems) Text(what string, node *yaml.Node) string {
	node = Target(node)
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" || node.Value == "" {
		p.Add("line %d: %s is not a text: put it in quotes if it looks like a number or a boolean", node.Line, what)
		return ""
	}
	return node.Value
}

// Count reads a whole number from 0 to MaxAmount.
func (p *Problems) Count(what string, node *yaml.Node) int64 {
	node = Target(node)
	var count int64
	number := node.Kind == yaml.ScalarNode && node.Tag == "!!int" && node.Decode(&count) == nil
	if !number || count < 0 || count > MaxAmount {
		p.Add("line %d: %s is %.40q and should be a whole number, 0 to %d", node.Line, what, node.Value, MaxAmount)
		return 0
	}
	return count
}

// Target follows an alias to what it stands for.
func Target(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
