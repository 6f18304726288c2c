package main

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// lookUp returns nil if a key is missing.
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

// indexOf returns -1 if the mapping lacks the key.
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

// setKey adds a new key at the end.
func setKey(node *yaml.Node, key string, value *yaml.Node) {
	if i := indexOf(node, key); i >= 0 {
		node.Content[i+1] = value
		return
	}
	node.Content = append(node.Content, text(key), value)
}

func removeKeys(node *yaml.Node, keys ...string) {
	for _, key := range keys {
		if i := indexOf(node, key); i >= 0 {
			node.Content = slices.Delete(node.Content, i, i+2)
		}
	}
}

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

func mapping(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: pairs}
}

func list(values ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: values}
}

func words(values ...string) *yaml.Node {
	short := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range values {
		short.Content = append(short.Content, text(value))
	}
	return short
}

func reference(kind, name string) *yaml.Node {
	return mapping(text("$ref"), text(fmt.Sprintf("#/components/%s/%s", kind, name)))
}

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
