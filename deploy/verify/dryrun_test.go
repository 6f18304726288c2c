package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/quorate/quorate/internal/servertest"
)

// kubernetesBinary is a server of Kubernetes. make verify-chart has it built, so a missing one is a failure there.
func kubernetesBinary(t *testing.T, name string) string {
	t.Helper()
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(caches, "quorate-adapters", "kubernetes-*", name))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	if os.Getenv("QUORATE_CHART") == "require" {
		t.Fatalf("%s is not built: make kubernetes-servers builds it", name)
	}
	t.Skipf("%s is not built; make verify-chart builds it", name)
	return ""
}

func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	etcd, apiserver := kubernetesBinary(t, "etcd"), kubernetesBinary(t, "kube-apiserver")
	ports := servertest.FreePorts(t, 3)
	servertest.StartProcess(t, "etcd", exec.Command(etcd, "--data-dir", t.TempDir(), "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+ports[0], "--advertise-client-urls", "http://"+ports[0],
		"--listen-peer-urls", "http://"+ports[1], "--initial-advertise-peer-urls", "http://"+ports[1],
		"--initial-cluster", "default=http://"+ports[1]))
	_, port, err := net.SplitHostPort(ports[2])
	if err != nil {
		t.Fatal(err)
	}
	key := writeKey(t)
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("secret,admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servertest.StartProcess(t, "kube-apiserver", exec.Command(apiserver, "--etcd-servers", "http://"+ports[0],
		"--secure-port", port, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--cert-dir", t.TempDir(), "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24",
		"--authorization-mode", "RBAC", "--token-auth-file", tokens, "--disable-admission-plugins", "ServiceAccount"))
	return &rest.Config{
		Host: "https://" + ports[2], BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS: 1000, Burst: 1000,
	}
}

func writeKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type kubernetes struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func connect(t *testing.T, config *rest.Config) kubernetes {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	names, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	awaitReadyz(t, names)
	k := kubernetes{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(names))}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "quotas", "labels": map[string]any{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
		}},
	}}
	if err := k.apply(t, namespace, nil); err != nil {
		t.Fatal(err)
	}
	return k
}

func awaitReadyz(t *testing.T, names *discovery.DiscoveryClient) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		text, err := names.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the API server is not ready: %v\n%s", err, text)
		}
	}
}

// apply applies an object by server-side apply, or with metav1.DryRunAll only as if.
func (k kubernetes) apply(t *testing.T, object *unstructured.Unstructured, dryRun []string) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = k.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		to = k.client.Resource(mapping.Resource).Namespace("quotas")
	}
	_, err = to.Patch(t.Context(), object.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "verify", DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// asPod is the pod of a template, which pod security admission judges when it is created.
func asPod(template map[string]any) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"],
	}}
	pod.SetName("pod")
	return pod
}

// rendered are releases that have every object of the chart among them.
func rendered() map[string]release {
	all := release{values: everything + "\nreplicas: 3\n", isUpgrade: true, cluster: scaledCluster(5)}
	scrapesAPI := all
	scrapesAPI.values += "metrics: {enabled: false}\n"
	return map[string]release{"defaults": {}, "everything": all, "metrics by the API": scrapesAPI}
}

// TestServerSideDryRun: a real API server accepts every object, strictly, those for the Prometheus operator and
// cert-manager by their own definitions, and pods in a namespace that enforces the profile restricted.
func TestServerSideDryRun(t *testing.T) {
	k := connect(t, startAPIServer(t))
	k.define(t)
	k.refuseUnknownFields(t)
	kinds := map[string]bool{}
	for name, r := range rendered() {
		for key, object := range r.objects(t) {
			kinds[object.GetKind()] = true
			if err := k.apply(t, object, []string{metav1.DryRunAll}); err != nil {
				t.Errorf("%s, %s: %v", name, key, err)
			}
			if template := podTemplate(t, object); template != nil {
				if err := k.apply(t, asPod(withVolume(template)), []string{metav1.DryRunAll}); err != nil {
					t.Errorf("%s, pod of %s: %v", name, key, err)
				}
			}
		}
	}
	want := []string{
		"Certificate", "ConfigMap", "CronJob", "Job", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor",
		"StatefulSet",
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("the API server was asked for %v, want %v", got, want)
	}
}

// refuseUnknownFields: a field that does not exist is refused in objects of Kubernetes and of operators. Without this
// the dry run would check nothing.
func (k kubernetes) refuseUnknownFields(t *testing.T) {
	t.Helper()
	all := release{values: everything}.objects(t)
	for _, key := range []string{"StatefulSet/quorate", "ServiceMonitor/quorate", "Certificate/quorate-0"} {
		if err := unstructured.SetNestedField(all[key].Object, "all", "spec", "replica"); err != nil {
			t.Fatal(err)
		}
		err := k.apply(t, all[key], []string{metav1.DryRunAll})
		if err == nil || !strings.Contains(err.Error(), "spec.replica") {
			t.Errorf("%s with a field that does not exist: %v", key, err)
		}
	}
}

// podTemplate is the template of the pods of an object; nil if it makes none.
func podTemplate(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	path := []string{"spec", "template"}
	if object.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// withVolume adds the volume that a StatefulSet would add for its claim.
func withVolume(template map[string]any) map[string]any {
	spec := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": "data", "emptyDir": map[string]any{}})
	delete(spec, "priorityClassName") // only in kube-system
	return template
}
