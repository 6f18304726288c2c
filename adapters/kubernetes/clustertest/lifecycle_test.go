package clustertest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// trees has one limit that both clusters share.
const trees = `trees:
  prod:
    resources: {vcore: {unit: milli}, memory: {unit: bytes}}
    limits: {vcore: 4, memory: unlimited}
    nodes:
      east: {}
      west: {nodes: {batch: {}}}
`

// TestOnePod follows a pod from its creation to the release, and one that waits meanwhile.
func TestOnePod(t *testing.T) {
	verify.Only(t)
	q, k := startQuorate(t, trees), startKubernetes(t, "one")
	k.install(t)
	k.startAdapter(t, q)
	k.addNamespace(t, "batch", "prod:west")
	for _, name := range []string{"first", "second"} {
		if err := k.api(alice).Create(t.Context(), newPod("batch", name, "3")); err != nil {
			t.Fatal(err)
		}
		await(t, name+" has a request", func() bool { held, waiting := q.records(t); return len(held)+len(waiting) > 0 })
	}
	await(t, "the first pod is scheduled", func() bool { return k.pod("batch", "first").Spec.NodeName != "" })
	await(t, "the second pod says why it waits", func() bool {
		c := conditionOf(k.pod("batch", "second"))
		return c != nil && c.Reason == "QuotaWaiting" && strings.Contains(c.Message, "prod holds 3000 of 4000 vcore")
	})
	if pod := k.pod("batch", "second"); pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) != 1 {
		t.Errorf("the second pod was opened: %+v", pod.Spec)
	}
	usage := q.run(t, "usage", "prod")
	if !strings.Contains(usage, "west") {
		t.Error(usage)
	}
	if err := k.finish(k.pod("batch", "first")); err != nil {
		t.Fatal(err)
	}
	await(t, "the second pod is scheduled", func() bool { return k.pod("batch", "second").Spec.NodeName != "" })
	await(t, "the second pod says that it was granted", func() bool {
		c := conditionOf(k.pod("batch", "second"))
		return c.Status == corev1.ConditionTrue && c.Reason == "QuotaGranted"
	})
	began := time.Now()
	if err := k.api(admin).Delete(t.Context(), k.pod("batch", "second"), now); err != nil {
		t.Fatal(err)
	}
	q.awaitEmpty(t)
	t.Logf("released %v after the deletion", time.Since(began).Round(time.Millisecond))
}

func conditionOf(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == "quorate.io/QuotaGranted" {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// TestTwoReplicas kills the elected one of two replicas. The other one continues.
func TestTwoReplicas(t *testing.T) {
	verify.Only(t)
	q, k := startQuorate(t, trees), startKubernetes(t, "replicas")
	k.install(t)
	first := k.startAdapter(t, q, "--leader-election=true")
	k.addNamespace(t, "batch", "prod:west")
	ports := servertest.FreePorts(t, 2)
	other := *k
	other.healthPort, other.webhookPort = ports[0], ports[1]
	other.startAdapter(t, q, "--leader-election=true")
	for _, name := range []string{"first", "second"} {
		if err := k.api(alice).Create(t.Context(), newPod("batch", name, "3")); err != nil {
			t.Fatal(err)
		}
		await(t, name+" says how it stands", func() bool { return conditionOf(k.pod("batch", name)) != nil })
	}
	await(t, "the first pod is scheduled", func() bool { return k.pod("batch", "first").Spec.NodeName != "" })
	first.Kill()
	began := time.Now()
	if err := k.finish(k.pod("batch", "first")); err != nil {
		t.Fatal(err)
	}
	await(t, "the other replica opens the second pod", func() bool { return k.pod("batch", "second").Spec.NodeName != "" })
	t.Logf("%v after the kill", time.Since(began).Round(time.Second))
}
