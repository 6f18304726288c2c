package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/internal/servertest"
)

// installAdapter edits the manifests as the page says, runs its commands that apply them, and starts the adapter as
// the applied Deployment does.
func (g *guide) installAdapter(t *testing.T, k *kubernetes, url string) *servertest.Process {
	t.Helper()
	const deployment = "adapters/kubernetes/deploy/deployment.yaml"
	g.edit(t, deployment, "image: .*", "image: registry.example/quorate-kubernetes:1")
	g.edit(t, deployment, "--server=.*", "--server="+url)
	g.run(t, g.script(t, "kubectl apply -f adapters/kubernetes/deploy/namespace.yaml"))
	k.reachAppliedWebhook(t)
	return k.startDeployed(t)
}

// reachAppliedWebhook lets the API server reach the webhook at this machine: there is no network of services.
func (k *kubernetes) reachAppliedWebhook(t *testing.T) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("admissionregistration.k8s.io/v1")
	object.SetKind("MutatingWebhookConfiguration")
	if err := k.api(admin).Get(t.Context(), client.ObjectKey{Name: "quorate-kubernetes"}, object); err != nil {
		t.Fatal(err)
	}
	k.reachWebhook(t, object)
	if err := k.api(admin).Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// startDeployed starts the adapter with the arguments and the secret of the Deployment that the API server has, as
// there is no kubelet. What is added stands for the environment of a pod: its service account and its addresses.
func (k *kubernetes) startDeployed(t *testing.T) *servertest.Process {
	t.Helper()
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: "quorate-system", Name: "quorate-kubernetes"}
	if err := k.api(admin).Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	replace := k.mountSecrets(t, pod)
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, replace.Replace(arg))
	}
	if user := "system:serviceaccount:quorate-system:" + pod.ServiceAccountName; !strings.Contains(tokens, user) {
		t.Fatalf("no token is that of %s", user)
	}
	p := startProcess(t, k.name+"-adapter", adapter.Path(t), append(args,
		"--kubeconfig", k.kubeconfig(t, controllerToken), "--webhook-host", "127.0.0.1",
		"--webhook-port", portOf(t, k.webhookPort), "--webhook-name", "127.0.0.1", "--health-address", k.healthPort,
		"--metrics-address", "0")...)
	k.awaitReady(t, p)
	return p
}

// mountSecrets also replaces the paths at which the pod's container has the secrets.
func (k *kubernetes) mountSecrets(t *testing.T, pod corev1.PodSpec) *strings.Replacer {
	t.Helper()
	folders, pairs := map[string]string{}, []string{}
	for _, volume := range pod.Volumes {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: "quorate-system", Name: volume.Secret.SecretName}
		if err := k.api(admin).Get(t.Context(), key, &secret); err != nil {
			t.Fatal(err)
		}
		folders[volume.Name] = t.TempDir()
		for name, value := range secret.Data {
			if err := os.WriteFile(filepath.Join(folders[volume.Name], name), value, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		pairs = append(pairs, mount.MountPath+"/", folders[mount.Name]+"/")
	}
	return strings.NewReplacer(pairs...)
}

// playNamespaceController empties a namespace when it is deleted and lets it go: no controllers run here.
func (k *kubernetes) playNamespaceController(t *testing.T, name string) {
	t.Helper()
	watched, err := k.api(admin).Watch(t.Context(), &corev1.NamespaceList{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		watched.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for event := range watched.ResultChan() {
			namespace, isNamespace := event.Object.(*corev1.Namespace)
			if isNamespace && namespace.Name == name && namespace.DeletionTimestamp != nil {
				if err := k.finalize(t, namespace); err != nil {
					t.Errorf("the namespace %s stays: %v", name, err)
				}
				return
			}
		}
	}()
}

func (k *kubernetes) finalize(t *testing.T, namespace *corev1.Namespace) error {
	t.Helper()
	api := k.api(admin)
	for _, content := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.Secret{}, &corev1.ConfigMap{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &coordinationv1.Lease{},
	} {
		if err := api.DeleteAllOf(t.Context(), content, client.InNamespace(namespace.Name)); err != nil {
			return fmt.Errorf("%T: %w", content, err)
		}
	}
	namespace.Spec.Finalizers = nil
	return api.SubResource("finalize").Update(t.Context(), namespace)
}
