package compat

import (
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/yamldoc"
)

// yamlRules bound the work that a small text can ask for by naming a large part of itself again and again.
var yamlRules = yamldoc.Rules{Depth: 1000, Values: 1 << 20, Aliases: 1000}

// YAML reads the one document of a YAML text, with the places of its parts; nil if it is empty.
func YAML(data []byte) (*yaml.Node, error) {
	if err := CheckSize(data); err != nil {
		return nil, err
	}
	document, err := yamldoc.Read(data, yamlRules)
	if err != nil {
		return nil, Problems{err.Error()}
	}
	return document.Root, nil
}

// Pair is a key of a YAML map with its value.
type Pair struct {
	Key   string
	Line  int
	Value *yaml.Node
}

// Pairs returns the pairs of a map in their order. A key that is repeated, not a string, or a merge key is a problem.
func (p *Problems) Pairs(what string, node *yaml.Node) []Pair {
	node = yamldoc.Target(node)
	if node.Kind != yaml.MappingNode {
		p.Add("line %d: %s is not a map of keys and values", node.Line, what)
		return nil
	}
	entries := yamldoc.Entries(node, func(err *yamldoc.Error) { p.Add("line %d: %s: %s", err.Line, what, err.Message) })
	pairs := make([]Pair, len(entries))
	for i, e := range entries {
		pairs[i] = Pair{Key: e.Key.Value, Line: e.Key.Line, Value: e.Value}
	}
	return pairs
}

// Items lists the parts of a list, behind aliases.
func (p *Problems) Items(what string, node *yaml.Node) []*yaml.Node {
	node = yamldoc.Target(node)
	if node.Kind != yaml.SequenceNode {
		p.Add("line %d: %s is not a list", node.Line, what)
		return nil
	}
	items := make([]*yaml.Node, len(node.Content))
	for i, item := range node.Content {
		items[i] = yamldoc.Target(item)
	}
	return items
}

// Text returns a value that is a string in YAML and not empty.
func (p *Problems) Text(what string, node *yaml.Node) string {
	node = yamldoc.Target(node)
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" || node.Value == "" {
		p.Add("line %d: %s is not a text: put it in quotes if it looks like a number or a boolean", node.Line, what)
		return ""
	}
	return node.Value
}

// Count reads a whole number from 0 to MaxAmount.
func (p *Problems) Count(what string, node *yaml.Node) int64 {
	node = yamldoc.Target(node)
	var count int64
	number := node.Kind == yaml.ScalarNode && node.Tag == "!!int" && node.Decode(&count) == nil
	if !number || count < 0 || count > MaxAmount {
		p.Add("line %d: %s is %.40q; it must be a whole number from 0 to %d", node.Line, what, node.Value, MaxAmount)
		return 0
	}
	return count
}
