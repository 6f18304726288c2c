package verify

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const chartFolder = "../chart"

var rewrite = flag.Bool("rewrite-chart", false, "write the golden rendering of the chart")

// hostWord matches the fields of a pod that give it a part of the machine.
var hostWord = regexp.MustCompile(`\bhost(Path|Network|PID|IPC|Port|Users):`)

// release is how a chart is rendered: its values, and what the cluster answers to lookups.
type release struct {
	values    string // YAML over the defaults
	isUpgrade bool
	apis      []string              // groups of the cluster beside those of Kubernetes
	cluster   engine.ClientProvider // nil for helm template, in which lookups find nothing
}

// render renders the templates as helm does; the order is that of their files.
func (r release) render() (map[string]string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(r.values), &values); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{
		Name: "quorate", Namespace: "quotas", Revision: 1, IsInstall: !r.isUpgrade, IsUpgrade: r.isUpgrade,
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, r.apis...)
	merged, err := util.ToRenderValues(chart, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	if r.cluster != nil {
		return engine.RenderWithClientProvider(chart, merged, r.cluster)
	}
	return engine.Render(chart, merged)
}

// manifest leaves out the notes.
func (r release) manifest(t *testing.T) string {
	t.Helper()
	files, err := r.render()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if content := strings.TrimSpace(files[name]); content != "" && strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(content, "---\n"))
		}
	}
	return text.String()
}

func (r release) objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(r.manifest(t)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if key := object.GetKind() + "/" + object.GetName(); len(object.Object) > 0 {
			if found[key] != nil {
				t.Errorf("%s is rendered twice", key)
			}
			found[key] = object
		}
	}
}

// everything switches on all that is off by default.
const everything = `
tls: {certManager: {enabled: true, issuerRef: {name: ca}}}
serviceMonitor: {enabled: true, tokenSecret: {name: prometheus}, labels: {release: monitoring}}
backup: {enabled: true, existingClaim: backups, tokenSecret: {name: backup}}
networkPolicy: {clients: [{namespaceSelector: {matchLabels: {quotas: use}}}]}
service: {type: LoadBalancer, annotations: {internal: "yes"}}
persistence: {storageClass: fast}
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
imagePullSecrets: [{name: registry}]
nodeSelector: {disk: ssd}
tolerations: [{key: quotas, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: system-cluster-critical
podAnnotations: {a: b}
podLabels: {c: d}
`

// TestChartLint: helm lint has nothing to say but that there is no icon.
func TestChartLint(t *testing.T) {
	for name, text := range map[string]string{"defaults": "", "everything": everything} {
		values := map[string]any{}
		if err := sigsyaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		for _, message := range lint.RunAll(chartFolder, values, "quotas").Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// TestDefaultRendering compares the objects of an installation without values with those that were reviewed.
func TestDefaultRendering(t *testing.T) {
	golden := filepath.Join("testdata", "default.yaml")
	got := release{}.manifest(t)
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("the rendering is not testdata/default.yaml: compare them after go test -args -rewrite-chart\n%s", got)
	}
}

// TestIDsFromPlatform: on OpenShift pods name no ids of user and group, because it refuses all but those of the
// namespace.
func TestIDsFromPlatform(t *testing.T) {
	const always, never = "idsFromPlatform: always", "idsFromPlatform: never"
	openshift := []string{"security.openshift.io/v1"}
	for name, test := range map[string]struct {
		release release
		named   bool
	}{
		"Kubernetes":      {release{}, true},
		"OpenShift":       {release{apis: openshift}, false},
		"helm template":   {release{values: always}, false},
		"named all along": {release{values: never, apis: openshift}, true},
		"older values":    {release{values: "idsFromPlatform: null", apis: openshift}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.release.values += "\nbackup: {enabled: true, existingClaim: backups}"
			text := test.release.manifest(t)
			for _, key := range []string{"runAsUser: 65532", "runAsGroup: 65532", "fsGroup: 65532"} {
				if strings.Contains(text, key) != test.named {
					t.Errorf("the rendering has %s: %t, want %t", key, !test.named, test.named)
				}
			}
			if strings.Count(text, "runAsNonRoot: true") != 2 {
				t.Errorf("not all pods are kept from running as root")
			}
		})
	}
}

// TestRestrictedV2: what pods want of the machine is what the SecurityContextConstraints restricted-v2 of OpenShift
// allow: no port, path or namespace of it, and volumes of the kinds listed there.
func TestRestrictedV2(t *testing.T) {
	allowed := []string{
		"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "name", "persistentVolumeClaim", "projected", "secret",
	}
	volumes := 0
	everywhere := release{values: everything, apis: []string{"security.openshift.io/v1"}}
	for name, object := range everywhere.objects(t) {
		pod, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
		if object.GetKind() == "CronJob" {
			pod, found, err = unstructured.NestedMap(object.Object, "spec", "jobTemplate", "spec", "template", "spec")
		}
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			continue
		}
		if text := fmt.Sprint(pod); hostWord.MatchString(text) {
			t.Errorf("%s wants a part of the machine: %s", name, hostWord.FindString(text))
		}
		list, _, err := unstructured.NestedSlice(pod, "volumes")
		if err != nil {
			t.Fatal(err)
		}
		for _, volume := range list {
			for _, kind := range slices.Collect(maps.Keys(volume.(map[string]any))) {
				volumes++
				if !slices.Contains(allowed, kind) {
					t.Errorf("%s has a volume of the kind %s", name, kind)
				}
			}
		}
	}
	if volumes < 6 {
		t.Errorf("only %d fields of volumes were found", volumes)
	}
}

// TestOptionalObjects: each switch adds or removes its objects and no others.
func TestOptionalObjects(t *testing.T) {
	defaults := []string{
		"ConfigMap/quorate", "NetworkPolicy/quorate", "PodDisruptionBudget/quorate", "Service/quorate",
		"Service/quorate-headless", "StatefulSet/quorate",
	}
	for values, change := range map[string]struct{ added, removed []string }{
		"":                                      {},
		"podDisruptionBudget: {enabled: false}": {removed: []string{"PodDisruptionBudget/quorate"}},
		"networkPolicy: {enabled: false}":       {removed: []string{"NetworkPolicy/quorate"}},
		"serviceMonitor: {enabled: true}":       {added: []string{"ServiceMonitor/quorate"}},
		"backup: {enabled: true, existingClaim: claim}": {added: []string{"CronJob/quorate-backup"}},
		"tls: {certManager: {enabled: true, issuerRef: {name: ca}}}": {
			added: []string{"Certificate/quorate-0", "Certificate/quorate-1", "Certificate/quorate-2"},
		},
	} {
		want := slices.Concat(defaults, change.added)
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(change.removed, name) })
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(release{values: values}.objects(t))); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", values, got, want)
		}
	}
}

// TestValuesAreChecked: values that make no working release are refused, with the name of the value.
func TestValuesAreChecked(t *testing.T) {
	for values, says := range map[string]string{
		"replica: 3":                      "replica",
		"replicas: 0":                     "at '/replicas'",
		"replicas: 9":                     "at '/replicas'",
		"replicas: many":                  "at '/replicas'",
		"bootstrapExpect: 2":              "bootstrapExpect",
		"replicas: 1":                     "replicas must be bootstrapExpect",
		"clusterName: a b":                "clusterName",
		"config: {join: [a]}":             "'join'",
		"config: {metrics-addr: \":80\"}": "'metrics-addr'",
		"metrics: {port: 80}":             "'port'",
		"serviceMonitor: {enabled: true}\nnetworkPolicy: {monitoring: []}": "networkPolicy.monitoring is empty",
		"image: {digest: abc}":                "digest",
		"image: {pullPolicy: Sometimes}":      "pullPolicy",
		"backup: {enabled: true}":             "existingClaim",
		"tls: {certManager: {enabled: true}}": "issuerRef",
		"persistence: {size: big}":            "size",
		"service: {type: ExternalName}":       "type",
		"serviceMonitor: {interval: often}":   "interval",
		"shrink: {tokenSecret: {nam: a}}":     "tokenSecret",
		"topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]": "maxSkew",
	} {
		if _, err := (release{values: values}).render(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", values, err, says)
		}
	}
}
