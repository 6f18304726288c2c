package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// convert fails for a field that does not exist.
func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if from == nil {
		t.Fatalf("%T is not rendered", to)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true); err != nil {
		t.Fatalf("%s: %v", from.GetName(), err)
	}
}

func statefulSet(t *testing.T, r release) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	convert(t, r.objects(t)["StatefulSet/quorate"], set)
	return set
}

// scaledCluster answers lookups with a StatefulSet of so many replicas.
type scaledCluster int64

func (s scaledCluster) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "quorate", "namespace": "quotas"},
		"spec":     map[string]any{"replicas": int64(s)},
	}}
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	return fake.NewSimpleDynamicClient(runtime.NewScheme(), set).Resource(resource), true, nil
}

// TestShrink: members of pods that go are removed before the release changes, the last pod first, and only then.
func TestShrink(t *testing.T) {
	shrinking := release{values: "shrink: {tokenSecret: {name: operator}}", isUpgrade: true, cluster: scaledCluster(5)}
	job := &batchv1.Job{}
	convert(t, shrinking.objects(t)["Job/quorate-shrink"], job)
	if job.Annotations["helm.sh/hook"] != "pre-upgrade" {
		t.Errorf("annotations: %v", job.Annotations)
	}
	var removed []string
	for _, c := range job.Spec.Template.Spec.InitContainers {
		removed = append(removed, strings.Join(c.Args, " "))
	}
	if want := []string{
		"member delete quorate-4 --missing-ok --timeout 2m", "member delete quorate-3 --missing-ok --timeout 2m",
	}; !slices.Equal(removed, want) {
		t.Errorf("removed by %q, want %q", removed, want)
	}
	if args := job.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args,
		[]string{"cluster", "wait", "--members", "3", "--healthy"}) {
		t.Errorf("waits by %q", args)
	}
	for name, r := range map[string]release{
		"as before": {isUpgrade: true, cluster: scaledCluster(3)},
		"growing":   {isUpgrade: true, cluster: scaledCluster(1)},
		"off":       {isUpgrade: true, cluster: scaledCluster(5), values: "shrink: {enabled: false}"},
		"template":  {isUpgrade: true},
	} {
		if r.objects(t)["Job/quorate-shrink"] != nil {
			t.Errorf("%s: there is a job", name)
		}
	}
}

// podTemplates are the pods of all objects of a release with everything in it.
func podTemplates(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	all := release{values: everything, isUpgrade: true, cluster: scaledCluster(5)}.objects(t)
	set, cron, job := &appsv1.StatefulSet{}, &batchv1.CronJob{}, &batchv1.Job{}
	convert(t, all["StatefulSet/quorate"], set)
	convert(t, all["CronJob/quorate-backup"], cron)
	convert(t, all["Job/quorate-shrink"], job)
	return map[string]corev1.PodTemplateSpec{
		"servers": set.Spec.Template, "backup": cron.Spec.JobTemplate.Spec.Template, "shrink": job.Spec.Template,
	}
}

// TestPodsAreRestricted: every pod has what the profile restricted of Kubernetes asks for, a read-only root, and no
// token of the API server.
func TestPodsAreRestricted(t *testing.T) {
	for name, pod := range podTemplates(t) {
		s := pod.Spec.SecurityContext
		if s == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("%s: %+v", name, pod.Spec)
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			own := c.SecurityContext
			if own == nil || *own.AllowPrivilegeEscalation || !*own.ReadOnlyRootFilesystem ||
				!slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s: %+v", c.Name, own)
			}
			volumes := map[string]bool{}
			for _, v := range pod.Spec.Volumes {
				volumes[v.Name] = true
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] && m.Name != "data" {
					t.Errorf("%s mounts %s, which is not a volume", c.Name, m.Name)
				}
			}
		}
	}
}

// podEnvironment is the environment that a pod of the StatefulSet gives its container.
func podEnvironment(t *testing.T, c corev1.Container, pod string) (list []string) {
	t.Helper()
	known := map[string]string{"metadata.name": pod, "status.podIP": "10.0.0.7"}
	expand := []string{}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = known[v.ValueFrom.FieldRef.FieldPath]
		}
		value = strings.NewReplacer(expand...).Replace(value)
		expand = append(expand, "$("+v.Name+")", value)
		list = append(list, v.Name+"="+value)
	}
	return list
}

// TestServersAcceptTheirSettings: the binary accepts what a pod gets, with certificates as deploy/README.md
// makes them, and its probes ask that server.
func TestServersAcceptTheirSettings(t *testing.T) {
	dir := t.TempDir()
	certs, keys := filepath.Join(dir, "tls"), filepath.Join(dir, "keys")
	for _, to := range []string{certs, keys} { // a secret for the certificates and one for the keys
		if code, out := runQuorate(t, nil, "tls", "create", to, "--nodes", "quorate-0,quorate-1,quorate-2"); code != 0 {
			t.Fatal(out)
		}
	}
	for name, values := range map[string]string{
		"defaults": "", "without the secret": "keys: {bootstrap: false}",
		"more settings": "config: {tls-client-auth: require, metrics-nodes: [a, \"b:*\"], snapshot-every: 100}",
	} {
		r := release{values: values}
		config := &corev1.ConfigMap{}
		convert(t, r.objects(t)["ConfigMap/quorate"], config)
		file := filepath.Join(dir, "quorate.yaml")
		text := strings.NewReplacer("/etc/quorate/tls", certs, "/etc/quorate/keys", keys, "/var/lib/quorate",
			filepath.Join(dir, "data")).Replace(config.Data["quorate.yaml"])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := strings.NewReplacer("/etc/quorate/tls", certs, "/etc/quorate/quorate.yaml", file)
		container := statefulSet(t, r).Spec.Template.Spec.Containers[0]
		for i := range 3 {
			pod := fmt.Sprintf("quorate-%d", i)
			environment := mapped(podEnvironment(t, container, pod), at)
			code, out := runQuorate(t, environment, append(mapped(container.Args, at), "--check")...)
			if code != 0 || !strings.Contains(out, "The settings of "+pod+" are valid") {
				t.Errorf("%s, %s: exit code %d: %s", name, pod, code, out)
			}
			for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
				code, out := runQuorate(t, environment, mapped(probe.Exec.Command[1:], at)...)
				if code != 1 || !strings.Contains(out, "https://127.0.0.1:7101 does not answer") {
					t.Errorf("%v without a server: exit code %d: %s", probe.Exec.Command, code, out)
				}
			}
		}
	}
}
