package manifest

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// FuzzParseManifest looks for texts that crash the reader, that mean something else to the library alone, or that
// do not survive being written and read again.
func FuzzParseManifest(f *testing.F) {
	for _, file := range exampleFiles(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(tree("      a: {labels: {x: \"\\u00e9\", 'y''s': z}}\n      b: {}\n"))
	f.Add("trees:\n  t:\n    labels: {}\n    thresholds:\n    - 80%\n    - '95%'\n    " +
		"principals:\n      - users: [\"*\", x]\n     " +
		"   limits: {}\n")
	f.Add(leasesAndItems)
	f.Add(allOfAccess)
	f.Add("access: {roles: {a: {verbs: [hold]}}, bindings: [{role: a, subjects: [everyone], hold-as: any, ends: \"\"}]}\n")
	f.Add("{\"trees\": {\"t\": {\"resources\": {\"cores\": {\"unit\": \"count\"}}}}}")
	f.Fuzz(func(t *testing.T, text string) {
		root, err := readText("f", []byte(text))
		if err != nil {
			return
		}
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(shapeOfNode(document.Content[0]), shapeOf(root)); diff != "" {
			t.Fatalf("the library reads (-), we read (+):\n%s", diff)
		}
		m, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		assertRoundTrip(t, m.Trees)
		assertSameManifest(t, m)
	})
}

// shapeOf returns the maps, lists and strings of a value without their positions.
func shapeOf(v value) any {
	switch v.kind {
	case kindMap:
		shape := map[string]any{}
		for _, e := range v.entries {
			shape[e.key] = shapeOf(e.value)
		}
		return shape
	case kindList:
		shape := []any{}
		for _, item := range v.items {
			shape = append(shape, shapeOf(item))
		}
		return shape
	case kindText:
	}
	return v.text
}

func shapeOfNode(n *yaml.Node) any {
	switch n.Kind { //nolint:exhaustive // a manifest has no aliases
	case yaml.MappingNode:
		shape := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			shape[n.Content[i].Value] = shapeOfNode(n.Content[i+1])
		}
		return shape
	case yaml.SequenceNode:
		shape := []any{}
		for _, item := range n.Content {
			shape = append(shape, shapeOfNode(item))
		}
		return shape
	default:
		return n.Value
	}
}
