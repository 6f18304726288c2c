// Package quotamanager converts the documents of the quota-manager of the Multi-Cluster App Dispatcher.
//
// The original silently accepts several roots, unknown parents, cycles and unreadable quotas, and leaves out nodes that
// it cannot place. Here each of these is a problem. With the option Lenient they are notes, and the tree becomes the
// same as in the original.
package quotamanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	// RootLabel is the label of a tree with the name of its root, which a path does not hold.
	RootLabel = "quota-manager/root"
	// NodeLabel is the label of a node with its original name, where that is not a valid name here.
	NodeLabel = "quota-manager/node"

	policy       = "borrowing"
	kindTree     = "QuotaTree"
	kindConsumer = "Consumer"
	noParent     = "nil"
)

// defaultResources are those of a tree that lists none.
var defaultResources = []string{"cpu", "memory", "nvidia.com/gpu"}

// Options say how to read.
type Options struct {
	// Lenient does what the original does with faults that it accepts, and notes each.
	Lenient bool
}

// treeDocument is a QuotaTree as the original reads it; keys match without regard to case.
type treeDocument struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ResourceNames []string                 `json:"resourceNames"`
		Nodes         map[string]*nodeDocument `json:"nodes"`
	} `json:"spec"`
}

type nodeDocument struct {
	Parent text            `json:"parent"`
	Hard   text            `json:"hard"`
	Quota  map[string]text `json:"quota"`
}

// text is a JSON text, or notes what stands in its place, so that all such places are found in one go.
type text struct{ value, wrong string }

func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &t.value)
	}
	if string(data) != "null" {
		t.wrong = string(data)
	}
	return nil
}

type forestDocument struct {
	Name  string   `json:"name"`
	Trees []string `json:"trees"`
}

// combinedDocument is trees with the forests that they are in. The original has no such file: forests are made by
// calls.
type combinedDocument struct {
	Trees   []json.RawMessage `json:"trees"`
	Forests []forestDocument  `json:"forests"`
}

// Convert reads QuotaTree documents: one, several one after the other, a list of them, or {"trees": [...], "forests":
// [{"name": "F", "trees": ["T"]}]}, also as the text in a ConfigMap; or the QuotaSubtree objects of trees, as YAML or
// JSON. Each tree gets the policy "borrowing", and its root is the original's root; a node's path is made of the names
// of its ancestors below the root. All resources are counted in the original's numbers.
//
// A comma before a closing brace, as the project's own example has it, is passed over with a note.
func Convert(data []byte, options Options) (*compat.Conversion, error) {
	c := &converter{Options: options, conversion: &compat.Conversion{}, byName: map[string]*quoratev1.Tree{}}
	if err := compat.CheckSize(data); err != nil {
		return nil, err
	}
	if err := c.readText(data); err != nil {
		return nil, err
	}
	if len(c.conversion.Trees) == 0 && len(c.problems) == 0 {
		c.problems.Add(`the configuration has no tree: a tree document begins with {"kind": "QuotaTree"`)
	}
	c.problems = append(c.problems, compat.Bounds(c.conversion.Trees)...)
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	compat.Sort(c.conversion.Trees)
	return c.conversion, nil
}

type converter struct {
	Options
	conversion *compat.Conversion
	problems   compat.Problems
	byName     map[string]*quoratev1.Tree
	forests    map[string]bool
}

// envelope is where documents lie in ConfigMaps.
var envelope = compat.Envelope{
	Keys: []string{"forest.json", "trees.json", "tree.json"}, Top: []string{"spec", "trees", "forests"},
}

func (c *converter) readText(data []byte) error {
	if c.readSubtrees(data) {
		return nil
	}
	data, note, err := envelope.Open(data)
	if err != nil {
		return err
	}
	if note != "" {
		c.conversion.Note("%s", note)
	}
	documents, err := compat.Documents(c.withoutCommas(data))
	if err != nil {
		return err
	}
	for _, document := range documents {
		c.readDocument(document)
	}
	return nil
}

// addFault reports a fault that the original accepts: as a problem or, with Lenient, as a note with its effect.
func (c *converter) addFault(becomes, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if c.Lenient {
		c.conversion.Note("%s: %s", what, becomes)
	} else {
		c.problems.Add("%s (the original accepts this: %s)", what, becomes)
	}
}

// withoutCommas puts a blank for each comma before a closing brace or bracket.
func (c *converter) withoutCommas(data []byte) []byte {
	clean := bytes.Clone(data)
	quoted, comma, line := false, -1, 1
	for i := 0; i < len(clean); i++ {
		switch b := clean[i]; {
		case b == '\n':
			line++
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted, comma = !quoted, -1
		case quoted, b == ' ', b == '\t', b == '\r':
		case b == ',':
			comma = i
		case (b == '}' || b == ']') && comma >= 0:
			clean[comma], comma = ' ', -1
			c.conversion.Note("line %d: ignored a comma before %c, which JSON does not allow", line, b)
		default:
			comma = -1
		}
	}
	return clean
}

// readDocument reads what one JSON value holds, by its shape. Lists and combined documents do not nest.
func (c *converter) readDocument(document json.RawMessage) {
	var all combinedDocument
	switch {
	case document[0] == '[':
		c.decodeDocument("a list", document, &all.Trees)
	case isCombined(document):
		c.decodeDocument("trees and forests", document, &all)
	default:
		all.Trees = []json.RawMessage{document}
	}
	for _, t := range all.Trees {
		c.readSingle(t)
	}
	for _, f := range all.Forests {
		c.readForest(f)
	}
}

func isCombined(document json.RawMessage) bool {
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(document, &shape); err != nil {
		return false // not an object, which single reports
	}
	return shape["kind"] == nil && (shape["trees"] != nil || shape["forests"] != nil)
}

func (c *converter) readSingle(document json.RawMessage) {
	var shape struct {
		Kind string `json:"kind"`
	}
	switch err := json.Unmarshal(document, &shape); {
	case err != nil:
		c.problems.Add("a document is not an object with a kind: %s", compat.Unreadable(err))
	case shape.Kind == kindConsumer:
		c.problems.Add("a %s document is a request, not configuration: remove it", kindConsumer)
	case shape.Kind != kindTree:
		c.problems.Add("invalid kind %q: it must be %q", shape.Kind, kindTree)
	default:
		c.readTree(document)
	}
}

// decodeDocument decodes a document, and notes the first key that is not read.
func (c *converter) decodeDocument(what string, document json.RawMessage, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		c.conversion.Note("%s: %s; it is ignored", what, strings.TrimPrefix(err.Error(), "json: "))
		err = json.Unmarshal(document, into)
	}
	if err != nil {
		c.problems.Add("error parsing tree: %s: %s", what, compat.Unreadable(err))
	}
	return err == nil
}

func (c *converter) readForest(f forestDocument) {
	name, err := compat.Name(f.Name)
	switch {
	case err != nil:
		c.problems.Add("a forest: %v", err)
		return
	case c.forests[name]:
		c.problems.Add("forest %q is listed twice", f.Name)
		return
	case len(f.Trees) == 0:
		c.conversion.Note("forest %q has no trees and is ignored", f.Name)
	case name != f.Name:
		c.conversion.Note("forest %q is renamed to %q", f.Name, name)
	}
	if c.forests == nil {
		c.forests = map[string]bool{}
	}
	c.forests[name] = true
	for _, tree := range f.Trees {
		t := c.byName[tree]
		switch {
		case t == nil:
			c.problems.Add("forest %q lists tree %q, which is not in the configuration", f.Name, tree)
		case t.GetForest() != "":
			c.addFault("it stays in the first", "tree %q is in the forests %q and %q", tree, t.GetForest(), f.Name)
		default:
			t.Forest = name
		}
	}
}
