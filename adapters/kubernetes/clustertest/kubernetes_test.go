package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/internal/servertest"
)

// The callers of an API server, by the name of their token.
const (
	admin           = "admin"
	alice           = "alice"
	controllerToken = "controller"
	jobs            = "jobs"
	schedulers      = "scheduler"
)

const tokens = `admin,admin,1,"system:masters"
alice,alice,2,"developers"
controller,system:serviceaccount:quorate-system:quorate-kubernetes,3,"system:serviceaccounts"
jobs,system:serviceaccount:kube-system:job-controller,4,"system:serviceaccounts,system:serviceaccounts:kube-system"
scheduler,system:kube-scheduler,5,""
`

// kubernetes is a real API server with its etcd and scheduler, and nodes without kubelets.
type kubernetes struct {
	t           *testing.T
	name, host  string
	webhookPort string
	healthPort  string
}

func startKubernetes(t *testing.T, name string) *kubernetes {
	t.Helper()
	ports := servertest.FreePorts(t, 6)
	k := &kubernetes{t: t, name: name, host: "https://" + ports[2], webhookPort: ports[3], healthPort: ports[4]}
	startProcess(t, name+"-etcd", etcd, "--data-dir", t.TempDir(), "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+ports[0], "--advertise-client-urls", "http://"+ports[0],
		"--listen-peer-urls", "http://"+ports[1], "--initial-advertise-peer-urls", "http://"+ports[1],
		"--initial-cluster", "default=http://"+ports[1])
	key := writeKey(t)
	startProcess(t, name+"-apiserver", apiserver, "--etcd-servers", "http://"+ports[0],
		"--secure-port", portOf(t, ports[2]), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--cert-dir", t.TempDir(), "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24",
		"--authorization-mode", "RBAC", "--token-auth-file", writeFile(t, "tokens.csv", tokens),
		// There is no controller that makes service accounts in new namespaces.
		"--disable-admission-plugins", "ServiceAccount")
	await(t, name+" serves", func() bool {
		var list corev1.NamespaceList
		api, err := client.New(k.config(admin), client.Options{})
		return err == nil && api.List(t.Context(), &list) == nil && len(list.Items) >= 4
	})
	await(t, name+" has its priority classes and roles", func() bool {
		var role unstructured.Unstructured
		role.SetAPIVersion("rbac.authorization.k8s.io/v1")
		role.SetKind("ClusterRoleBinding")
		return k.api(admin).Get(t.Context(), client.ObjectKey{Name: "system:kube-scheduler"}, &role) == nil
	})
	config := k.kubeconfig(t, schedulers)
	startProcess(t, name+"-scheduler", scheduler, "--kubeconfig", config, "--authentication-kubeconfig", config,
		"--authorization-kubeconfig", config, "--leader-elect=false", "--bind-address", "127.0.0.1",
		"--secure-port", portOf(t, ports[5]), "--kube-api-qps", "500", "--kube-api-burst", "1000")
	k.addNode(t)
	return k
}

func writeKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})))
}

func (k *kubernetes) config(token string) *rest.Config {
	return &rest.Config{
		Host: k.host, BearerToken: token, QPS: 1000, Burst: 2000, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
}

func (k *kubernetes) api(token string) client.WithWatch {
	api, err := client.NewWithWatch(k.config(token), client.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	return api
}

func (k *kubernetes) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	return writeFile(t, token+".kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, k.host, token))
}

// addNode adds a node that is large enough for everything.
func (k *kubernetes) addNode(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := k.api(admin).Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil // admission has marked it as not ready
	if err := k.api(admin).Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("4000"), "memory": resource.MustParse("4Ti"), "pods": resource.MustParse("5000"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
	}}
	if err := k.api(admin).Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// install creates what deploy/ has, with the webhook at this machine instead of behind a service.
func (k *kubernetes) install(t *testing.T) {
	t.Helper()
	kustomization, err := os.ReadFile("../deploy/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../deploy/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("deploy/ has %d files, %v", len(files), err)
	}
	for _, name := range []string{"namespace.yaml", "rbac.yaml", "webhook.yaml", "policy.yaml", "deployment.yaml"} {
		if !strings.Contains(string(kustomization), name) {
			t.Errorf("kustomization.yaml lacks %s", name)
		}
		text, err := os.ReadFile("../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		k.create(t, string(text))
	}
}

// create fails for fields that the API server does not know.
func (k *kubernetes) create(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var created []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err != nil {
			break
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "MutatingWebhookConfiguration" {
			k.reachWebhook(t, object)
		}
		if err := k.api(admin).Create(t.Context(), object, client.FieldValidation("Strict")); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		created = append(created, object)
	}
	if len(created) == 0 {
		t.Fatal("the text has no objects")
	}
	return created
}

func (k *kubernetes) reachWebhook(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	var config admissionv1.MutatingWebhookConfiguration
	if err := scheme.Scheme.Convert(object, &config, nil); err != nil {
		t.Fatal(err)
	}
	for i := range config.Webhooks {
		url := "https://" + k.webhookPort + *config.Webhooks[i].ClientConfig.Service.Path
		config.Webhooks[i].ClientConfig.Service, config.Webhooks[i].ClientConfig.URL = nil, &url
	}
	if err := scheme.Scheme.Convert(&config, object, nil); err != nil {
		t.Fatal(err)
	}
}

// addNamespace makes a namespace that opts in, in which alice may do everything.
func (k *kubernetes) addNamespace(t *testing.T, name, node string) {
	t.Helper()
	k.create(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {quorate.io/gate: enabled}, annotations: {quorate.io/node: "%[2]s"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
`, name, node))
	forged := newPod("default", "forged", "1")
	forged.Labels = map[string]string{"quorate.io/quota": "gated"}
	await(t, "the policies apply", func() bool { // the API server learns of each by itself
		return k.api(admin).Create(t.Context(), forged.DeepCopy(), client.DryRunAll) != nil &&
			k.api(alice).Create(t.Context(), jobFor(name, "nobody"), client.DryRunAll) != nil
	})
	await(t, "the webhook applies", func() bool {
		refused := k.api(alice).Create(t.Context(), newPod(name, "probe", "0"), client.DryRunAll)
		return refused != nil && strings.Contains(refused.Error(), "requests nothing that is counted")
	})
}

func (k *kubernetes) startAdapter(t *testing.T, q *quorateServers, args ...string) *servertest.Process {
	t.Helper()
	p := startProcess(t, k.name+"-adapter", adapter.Path(t), append([]string{
		"--kubeconfig", k.kubeconfig(t, controllerToken), "--cluster", k.name, "--server", strings.Join(q.URLs, ","),
		"--webhook-host", "127.0.0.1", "--webhook-port", portOf(t, k.webhookPort), "--webhook-name", "127.0.0.1",
		"--health-address", k.healthPort, "--metrics-address", "0", "--leader-election=false",
		"--refresh", "2s",
	}, args...)...)
	k.awaitReady(t, p)
	return p
}

func (k *kubernetes) awaitReady(t *testing.T, p *servertest.Process) {
	t.Helper()
	await(t, k.name+"'s adapter is ready", func() bool {
		if !p.Running() {
			t.Fatal("the adapter has ended")
		}
		return isReady(k.healthPort)
	})
}

func newPod(namespace, name, cpu string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
	if cpu != "0" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
	return pod
}

// pod returns nil if there is none.
func (k *kubernetes) pod(namespace, name string) *corev1.Pod {
	var pod corev1.Pod
	if err := k.api(admin).Get(k.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &pod); err != nil {
		if client.IgnoreNotFound(err) != nil {
			k.t.Fatal(err)
		}
		return nil
	}
	return &pod
}

// finish ends a pod as a kubelet does.
func (k *kubernetes) finish(pod *corev1.Pod) error {
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	return client.IgnoreNotFound(k.api(admin).Status().Patch(k.t.Context(), pod, client.MergeFrom(before)))
}
