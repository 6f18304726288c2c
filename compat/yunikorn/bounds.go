package yunikorn

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Bounds of a configuration. They are ours; the original has none, and no file that people write comes near them.
const (
	// MaxSize is the most bytes of a configuration.
	MaxSize = 1 << 20

	maxKeys       = 256     // of one map: the library compares all pairs of them
	maxValues     = 200_000 // maps, lists and scalars, those behind an alias counted wherever it stands
	maxQueueDepth = 64      // levels of queues below root
)

// measure refuses a text that would cost far more than its size to read. A text that is no YAML has no problem here.
func measure(text []byte) *Problem {
	if len(text) > MaxSize {
		return &Problem{Rule: ruleBounds, Text: fmt.Sprintf(
			"a configuration may have %d bytes, and this one has more: split it by partitions", MaxSize)}
	}
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
		return nil // whoever reads the text for good meets the same error
	}
	m := &measuring{sizes: map[*yaml.Node]int{}}
	if m.size(&document) > maxValues && m.problem == nil {
		m.problem = &Problem{Rule: ruleBounds, Text: fmt.Sprintf(
			"a configuration may have %d values, aliases written out, and this one has more: split it by partitions", maxValues)}
	}
	return m.problem
}

// measuring counts the values of a document, once behind each anchor.
type measuring struct {
	sizes   map[*yaml.Node]int // of what aliases stand for
	problem *Problem
}

// size is how many values a node has, or some number above the bound.
func (m *measuring) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		size, known := m.sizes[n.Alias]
		if !known {
			m.sizes[n.Alias] = 0 // an anchor that contains itself, which the library refuses
			size = m.size(n.Alias)
			m.sizes[n.Alias] = size
		}
		return size
	}
	if n.Kind == yaml.MappingNode && len(n.Content)/2 > maxKeys && m.problem == nil {
		m.problem = &Problem{
			Path: fmt.Sprintf("line %d", n.Line), Rule: ruleBounds,
			Text: fmt.Sprintf("a map may have %d keys, and this one has %d", maxKeys, len(n.Content)/2),
		}
	}
	size := 1
	for _, child := range n.Content {
		size = min(size+m.size(child), maxValues+1)
	}
	return size
}
