package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/testing/protocmp"
)

// hostile is what tools of YAML change if they can: deploy/verify gives it to PyYAML, yq and Helm.
const hostile = `version: 1
policies: {"on": {base: strict, sum: unchecked, borrowing: none, preemption: none, child-limit: unchecked}}
trees:
  "no":
    policy: "on"
    require-reason: true
    labels: {release: "1.10", mode: "0755", "null": "~", when: "2027-01-01", at: "12:30", "y": "n", plain: 12}
    leases: {default-ttl: 30m, max-ttl: 7d}
    overtake: 90s
    thresholds: none
    resources: {cores: {unit: milli}, memory: {unit: bytes}, "1e3": {unit: count}}
    limits: {cores: 1.50, memory: 1000000, "1e3": unlimited}
    auto-approve: {at-most: 20%, every: 30d}
    bindings: [{role: viewer, subjects: [user corp/ann], ends: "2027-01-01T00:00:00Z"}]
    principals: [{users: ["1_000", "0x10", "off"], limits: {memory: 123456789}}]
    nodes: {"010": {limits: {cores: 0.5, memory: 4503599627370496}}, 2024: {}}
`

// manifestsOfPages are the manifests in the documentation, whole ones and texts of subtrees.
func manifestsOfPages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocksOfYAML.FindAllStringSubmatch(string(text), -1) {
			_, err := Parse(page, []byte(block[1]))
			if beginsManifest.MatchString(block[1]) && err == nil { // others show a part of a tree
				found[filepath.Base(page)+": "+strings.SplitN(block[1], "\n", 4)[2]] = block[1]
			}
		}
	}
	if len(found) < 5 {
		t.Fatalf("only %d manifests on the pages", len(found))
	}
	return found
}

var (
	blocksOfYAML   = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	beginsManifest = regexp.MustCompile(`(?m)\A(?:#.*\n)*(?:version: 1\n)?(?:trees|access|policies|at):`)
)

// TestManifestsSurviveOtherTools lets two readers of this process read and write every manifest: one that takes every
// value for what YAML says it is, and JSON. deploy/verify does the same with PyYAML, yq and Helm.
func TestManifestsSurviveOtherTools(t *testing.T) {
	texts := manifestsOfPages(t)
	texts["hostile"] = hostile
	for _, file := range exampleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	for name, text := range texts {
		want, err := Parse(name, []byte(text))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		var values map[string]any
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(withTextKeys(values))
		if err != nil {
			t.Fatal(err)
		}
		for tool, written := range map[string][]byte{"YAML": asYAML, "JSON": asJSON} {
			got, err := Parse(name, written)
			if err != nil {
				t.Errorf("%s after %s: %v\n%s", name, tool, err, written)
				continue
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s after %s (-before +after):\n%s", name, tool, diff)
			}
		}
	}
}

// withTextKeys makes texts of the keys that are numbers, as tools do that have only JSON inside.
func withTextKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withTextKeys(v[key])
		}
	case map[any]any:
		texts := map[string]any{}
		for key, inner := range v {
			texts[fmt.Sprint(key)] = withTextKeys(inner)
		}
		return texts
	case []any:
		for i := range v {
			v[i] = withTextKeys(v[i])
		}
	}
	return v
}
