package main

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// lookUp returns the value below keys of mappings, or nil.
func lookUp(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		i := indexOf(node, key)
		if i < 0 {
			return nil
		}
		node = node.Content[i+1]
	}
	return node
}

// indexOf is the index of a key in the content of a mapping, or -1.
func indexOf(node *yaml.Node, key string) int {
	if node == nil || node.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// setKey sets the value of a key, at the end if the mapping lacks it.
func setKey(node *yaml.Node, key string, value *yaml.Node) {
	if i := indexOf(node, key); i >= 0 {
		node.Content[i+1] = value
		return
	}
	node.Content = append(node.Content, text(key), value)
}

// removeKeys removes keys from a mapping.
func removeKeys(node *yaml.Node, keys ...string) {
	for _, key := range keys {
		if i := indexOf(node, key); i >= 0 {
			node.Content = slices.Delete(node.Content, i, i+2)
		}
	}
}

// keysOf are the keys of a mapping.
func keysOf(node *yaml.Node) []string {
	var keys []string
	for i := 0; node != nil && i < len(node.Content); i += 2 {
		keys = append(keys, node.Content[i].Value)
	}
	return keys
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func yes() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"} }

// mapping is a mapping of pairs of keys and values.
func mapping(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: pairs}
}

func list(values ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: values}
}

// words is a list in one line.
func words(values ...string) *yaml.Node {
	short := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range values {
		short.Content = append(short.Content, text(value))
	}
	return short
}

// reference is a $ref to a component of a kind.
func reference(kind, name string) *yaml.Node {
	return mapping(text("$ref"), text(fmt.Sprintf("#/components/%s/%s", kind, name)))
}

// withoutAliases returns a copy of a node in which nothing refers to other parts of it.
func withoutAliases(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return withoutAliases(node.Alias)
	}
	copied := *node
	copied.Anchor, copied.Content = "", nil
	for _, child := range node.Content {
		copied.Content = append(copied.Content, withoutAliases(child))
	}
	return &copied
}
