package verify

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/quorate/quorate/internal/manifest"
)

// yqModule is built by go install, so that no go.mod has what it needs.
const yqModule = "github.com/mikefarah/yq/v4@v4.54.3"

// TestManifestsSurviveTools gives every example and every manifest of the documentation to PyYAML, which follows YAML
// 1.1, to yq and to Helm's toYaml, and compares what is read from their output.
func TestManifestsSurviveTools(t *testing.T) {
	tools := map[string]func(*testing.T, string) string{"PyYAML": withPyYAML(t), "yq": withYq(t), "helm template": withHelm}
	for name, text := range manifests(t) {
		want, err := manifest.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			t.Run(name+" "+tool, func(t *testing.T) {
				written := tools[tool](t, text)
				got, err := manifest.Parse(name, []byte(written))
				if err != nil {
					t.Fatalf("%v\n%s", err, written)
				}
				if !proto.Equal(want.ApplyRequest(), got.ApplyRequest()) {
					t.Errorf("another manifest:\n%s", written)
				}
			})
		}
	}
}

var (
	blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	hidden = regexp.MustCompile("(?s)const hostile = `(.*?)`")
)

// manifests are those of the repository that are complete, by file and number.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(name, text string) {
		if _, err := manifest.Parse(name, []byte(text)); err == nil {
			found[name] = text
		}
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		add(filepath.Base(file), readFile(t, file))
	}
	if len(found) < len(files) {
		t.Fatalf("only %d of %d examples are manifests", len(found), len(files))
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for i, block := range blocks.FindAllStringSubmatch(readFile(t, page), -1) {
			add(filepath.Base(page)+strings.Repeat("'", i), block[1])
		}
	}
	hostile := hidden.FindStringSubmatch(readFile(t, "../../internal/manifest/roundtrip_test.go"))
	if hostile == nil || len(found) < len(files)+5 {
		t.Fatalf("%d manifests, and hostile is %v", len(found), hostile)
	}
	add("hostile", hostile[1])
	return found
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withPyYAML(t *testing.T) func(*testing.T, string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import yaml").Run(); err != nil {
		t.Fatalf("install python3-yaml: %v", err)
	}
	return func(t *testing.T, text string) string {
		t.Helper()
		const program = "import sys, yaml; yaml.safe_dump(yaml.safe_load(sys.stdin), sys.stdout)"
		return run(t, text, "python3", "-c", program)
	}
}

func withYq(t *testing.T) func(*testing.T, string) string {
	t.Helper()
	folder := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", yqModule)
	install.Env = append(os.Environ(), "GOBIN="+folder, "GOWORK=off", "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(t *testing.T, text string) string {
		t.Helper()
		// By way of JSON, so that yq resolves every value, and not only the style of the nodes.
		asJSON := run(t, text, filepath.Join(folder, "yq"), "-o=json", ".")
		return run(t, asJSON, filepath.Join(folder, "yq"), "-p=json", "-o=yaml", ".")
	}
}

func run(t *testing.T, input, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, problems.String())
	}
	return out.String()
}

// withHelm renders a chart whose values have the manifest and whose template writes it.
func withHelm(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for file, content := range map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: manifest\nversion: 1.0.0\n",
		"values.yaml":         "manifest:\n  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n",
		"templates/text.yaml": "{{ toYaml .Values.manifest }}\n",
	} {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chart, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	values, err := util.ToRenderValues(chart, nil, common.ReleaseOptions{Name: "m"}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered["manifest/templates/text.yaml"]
}
