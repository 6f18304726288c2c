package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsyaml "sigs.k8s.io/yaml"
)

// definition is a file of a Go module that defines a resource of an operator. The sum is that of the module: go.mod
// does not require it, because nothing imports it, and requiring it would add its dependencies to go.sum.
type definition struct{ module, sum, file string }

// definitions are of the kinds of other API groups that the chart renders.
var definitions = []definition{
	{
		"github.com/prometheus-operator/prometheus-operator@v0.94.1", "h1:QEIb2wenPH+SdMN1xMf8l4Pmj00YYXXI6HlbLlQWkww=",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	{
		"github.com/cert-manager/cert-manager@v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
		"deploy/crds/cert-manager.io_certificates.yaml",
	},
}

// load makes the go command download the module the first time, so that a missing one is a failure of make verify-chart
// only.
func (d definition) load(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", d.module)
	command.Dir = t.TempDir() // outside of this module, whose go.mod stays as it is
	text, failed := command.Output()
	var module struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(text, &module); err != nil {
		t.Fatalf("go mod download %s: %v, %v\n%s", d.module, failed, err, text)
	}
	if module.Dir == "" {
		if os.Getenv("QUORATE_CHART") == "require" {
			t.Fatalf("go mod download %s: %s", d.module, module.Error)
		}
		t.Skipf("go mod download %s: %s", d.module, module.Error)
	}
	if module.Sum != d.sum {
		t.Fatalf("%s has the sum %s, want %s", d.module, module.Sum, d.sum)
	}
	yaml, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(d.file)))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal(yaml, &object.Object); err != nil {
		t.Fatalf("%s: %v", d.file, err)
	}
	return object
}

// define creates the resources of other API groups, and waits until the API server serves them.
func (k kubernetes) define(t *testing.T) {
	t.Helper()
	for _, d := range definitions {
		object := d.load(t)
		if err := k.apply(t, object, nil); err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		resource := resourceOf(t, object)
		for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
			_, err := k.client.Resource(resource).List(t.Context(), metav1.ListOptions{})
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the API server does not serve %v: %v", resource, err)
			}
		}
	}
	k.mapper.Reset()
}

func resourceOf(t *testing.T, definition *unstructured.Unstructured) schema.GroupVersionResource {
	t.Helper()
	group, _, err := unstructured.NestedString(definition.Object, "spec", "group")
	if err != nil {
		t.Fatal(err)
	}
	plural, _, err := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		t.Fatalf("versions %v, %v", versions, err)
	}
	version := fmt.Sprint(versions[0].(map[string]any)["name"])
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}
