package verify

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/internal/servertest"
)

// chartServers are the servers of a release as processes with addresses of loopback.
type chartServers struct {
	dir, certs string
	ids, ports []string
	names      []string // names of pods, each with the address in its place
}

// podPorts is how many ports a pod has: the API, raft, gossip and metrics.
const podPorts = 4

// newChartServers finds addresses and makes certificates for so many pods.
func newChartServers(t *testing.T, pods int) *chartServers {
	t.Helper()
	dir := t.TempDir()
	s := &chartServers{dir: dir, certs: filepath.Join(dir, "tls"), ports: servertest.FreePorts(t, podPorts*pods)}
	for i := range pods {
		pod := fmt.Sprintf("quorate-%d", i)
		for j, port := range []string{":7101", ":7201", ":7301"} {
			s.names = append(s.names, pod+".quorate-headless.quotas.svc.cluster.local"+port, s.ports[podPorts*i+j])
		}
		s.ids = append(s.ids, pod)
	}
	if code, out := runQuorate(t, nil, "tls", "create", s.certs, "--nodes", strings.Join(s.ids, ",")); code != 0 {
		t.Fatal(out)
	}
	return s
}

// start starts the pods of a release from one ordinal to the one before another. Names of pods, and what listens on
// all addresses, become addresses of loopback, and nothing else changes.
func (s *chartServers) start(t *testing.T, r release, from, to int) {
	t.Helper()
	config := &corev1.ConfigMap{}
	convert(t, r.objects(t)["ConfigMap/quorate"], config)
	container := statefulSet(t, r).Spec.Template.Spec.Containers[0]
	for i := from; i < to; i++ {
		pod := s.ids[i]
		file := filepath.Join(s.dir, pod+".yaml")
		own := s.ports[podPorts*i:]
		at := strings.NewReplacer(append(slices.Clip(s.names),
			`":7101"`, own[0], `":7201"`, own[1], `":7301"`, own[2], "[10.0.0.7]:7301", own[2], `":7401"`, own[3],
			"/etc/quorate/tls", s.certs, "/etc/quorate/keys", s.certs, "/etc/quorate/quorate.yaml", file,
			"/var/lib/quorate", filepath.Join(s.dir, pod))...)
		if err := os.WriteFile(file, []byte(at.Replace(config.Data["quorate.yaml"])), 0o600); err != nil {
			t.Fatal(err)
		}
		environment := mapped(podEnvironment(t, container, pod), at)
		startQuorate(t, environment, mapped(container.Args, at))
		probe := mapped(container.ReadinessProbe.Exec.Command[1:], at)
		t.Cleanup(func() {
			if t.Failed() {
				_, out := runQuorate(t, environment, probe...)
				t.Logf("readiness of %s: %s", pod, out)
			}
		})
	}
}

// client is the environment of a job of the chart, which reaches the service.
func (s *chartServers) client(t *testing.T, variables []corev1.EnvVar) (list []string) {
	t.Helper()
	at := strings.NewReplacer("/etc/quorate/tls", s.certs, "quorate.quotas.svc:7101", s.ports[0])
	for _, v := range variables {
		list = append(list, v.Name+"="+at.Replace(v.Value))
	}
	return list
}

func (s *chartServers) metrics(t *testing.T, ordinal int) string {
	t.Helper()
	answer, err := http.Get("http://" + s.ports[podPorts*ordinal+3] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("metrics of %s: %s, %v", s.ids[ordinal], answer.Status, err)
	}
	return string(text)
}

// TestChartCluster: the rendered settings make a cluster of three, two more pods join it by themselves, and the job
// that runs before the release shrinks removes their members.
func TestChartCluster(t *testing.T) {
	s := newChartServers(t, 5)
	s.start(t, release{}, 0, 3)
	job := &batchv1.Job{}
	shrinking := release{isUpgrade: true, cluster: scaledCluster(5)}
	convert(t, shrinking.objects(t)["Job/quorate-shrink"], job)
	pod := job.Spec.Template.Spec
	environment := s.client(t, pod.Containers[0].Env)
	await(t, environment, "cluster", "wait", "--voters", "3", "--healthy", "--timeout", "2m")
	s.start(t, release{values: "replicas: 5", isUpgrade: true}, 3, 5)
	await(t, environment, "cluster", "wait", "--voters", "5", "--healthy", "--timeout", "2m")
	for i := range s.ids {
		if text := s.metrics(t, i); !strings.Contains(text, `quorate_leader{cluster="quorate"}`) {
			t.Errorf("metrics of %s:\n%s", s.ids[i], text[:min(len(text), 1000)])
		}
	}
	for _, step := range append(pod.InitContainers, pod.Containers...) {
		if code, out := runQuorate(t, s.client(t, step.Env), step.Args...); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", step.Args, code, out)
		}
	}
	code, out := runQuorate(t, environment, "member", "list", "--jq", `.members[] | .id + " " + .seat`)
	want := "quorate-0 SEAT_VOTER\nquorate-1 SEAT_VOTER\nquorate-2 SEAT_VOTER\n" +
		"quorate-3 SEAT_NONE\nquorate-4 SEAT_NONE\n"
	if code != 0 || out != want {
		t.Errorf("members: exit code %d\n%s\nwant\n%s", code, out, want)
	}
}
