package compat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/yamldoc"
)

// Envelope says how the configurations of a system lie in ConfigMaps of Kubernetes and in values of Helm charts.
type Envelope struct {
	// Keys have a configuration as their text, the likeliest first.
	Keys []string
	// Top are the keys with which a configuration itself begins.
	Top []string
}

const (
	configMap = "ConfigMap"
	// maxEnvelopeDepth is how deep in a document the text is looked for.
	maxEnvelopeDepth = 8
)

// Open returns the configuration in a ConfigMap or in values of a chart, and a note that says where it was found. Other
// texts are returned as they are, without a note. The configuration has the line numbers of the file where it is
// written as a block of lines.
func (e Envelope) Open(data []byte) (text []byte, note string, err error) {
	if CheckSize(data) != nil || !e.mayBe(data) {
		return data, "", nil //nolint:nilerr // who reads the text says that it is too large
	}
	documents := yamlDocuments(data)
	var found []enclosed
	kind := ""
	for _, document := range documents {
		if slices.ContainsFunc(e.Top, func(key string) bool { return valueOf(document, key) != nil }) &&
			textAt(document, "kind") != configMap {
			return data, "", nil
		}
		if textAt(document, "apiVersion") != "" {
			kind = textAt(document, "kind")
		}
		found = append(found, e.search(document, "", 0)...)
	}
	switch best := e.bestOf(found); {
	case len(best) == 1:
		return best[0].lines(), "the configuration is the text of " + best[0].path, nil
	case len(best) > 1:
		return nil, "", Problems{fmt.Sprintf("%s and %s are texts of configurations: hand over one of them",
			best[0].path, best[1].path)}
	case kind != "":
		return nil, "", Problems{fmt.Sprintf("this is an object of Kubernetes, a %s, without a configuration: hand "+
			"over the configuration itself, or a ConfigMap that has it below data as %s", kind,
			strings.Join(e.Keys, " or "))}
	}
	return data, "", nil
}

// mayBe reports whether a text has the words of an envelope: other texts need not be read once more.
func (e Envelope) mayBe(data []byte) bool {
	return slices.ContainsFunc(slices.Concat(e.Keys, []string{"apiVersion"}), func(word string) bool {
		return bytes.Contains(data, []byte(word))
	})
}

// yamlDocuments stops before the first document that cannot be read.
func yamlDocuments(data []byte) []*yaml.Node {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		document := &yaml.Node{}
		if decoder.Decode(document) != nil {
			return documents
		}
		if len(document.Content) == 1 {
			documents = append(documents, document.Content[0])
		}
	}
}

type enclosed struct {
	path string
	key  string
	node *yaml.Node
}

// lines are the text, below as many empty lines as stand above it in the file.
func (t enclosed) lines() []byte {
	if t.node.Style != yaml.LiteralStyle {
		return []byte(t.node.Value)
	}
	return []byte(strings.Repeat("\n", t.node.Line) + t.node.Value)
}

// search finds the texts of keys in a value. A ConfigMap with one key may have it by any name.
func (e Envelope) search(node *yaml.Node, path string, depth int) []enclosed {
	if depth > maxEnvelopeDepth {
		return nil
	}
	var found []enclosed
	if node.Kind == yaml.SequenceNode {
		for i, item := range node.Content {
			found = append(found, e.search(item, fmt.Sprintf("%s[%d]", path, i), depth+1)...)
		}
	}
	if node.Kind != yaml.MappingNode {
		return found
	}
	if data := valueOf(node, "data"); data != nil && textAt(node, "kind") == configMap {
		return e.searchData(data, path)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		at := strings.TrimPrefix(path+"."+key, ".")
		if isText(value) && slices.Contains(e.Keys, key) {
			found = append(found, enclosed{at, key, value})
		}
		found = append(found, e.search(value, at, depth+1)...)
	}
	return found
}

func (e Envelope) searchData(data *yaml.Node, path string) []enclosed {
	var all, named []enclosed
	for i := 0; i+1 < len(data.Content); i += 2 {
		if key, value := data.Content[i].Value, data.Content[i+1]; isText(value) {
			text := enclosed{strings.TrimPrefix(path+".data."+key, "."), key, value}
			all = append(all, text)
			if slices.Contains(e.Keys, key) {
				named = append(named, text)
			}
		}
	}
	if len(all) == 1 {
		return all
	}
	return named
}

// bestOf keeps the texts of the likeliest key.
func (e Envelope) bestOf(found []enclosed) []enclosed {
	for _, key := range e.Keys {
		if same := slices.DeleteFunc(slices.Clone(found), func(t enclosed) bool { return t.key != key }); len(same) > 0 {
			return same
		}
	}
	return found
}

func isText(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!str" }

func valueOf(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return yamldoc.Target(node.Content[i+1])
		}
	}
	return nil
}

func textAt(node *yaml.Node, key string) string {
	if value := valueOf(node, key); value != nil && isText(value) {
		return value.Value
	}
	return ""
}
