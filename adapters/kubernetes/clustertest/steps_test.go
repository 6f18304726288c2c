package clustertest

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/adapters/gate"
	"github.com/quorate/quorate/adapters/kubernetes/internal/controller"
	"github.com/quorate/quorate/adapters/kubernetes/internal/podgate"
	"github.com/quorate/quorate/internal/verify"
)

// runAdapter runs the adapter in this process with a budget of calls, until that or stop ends it.
func (k *kubernetes) runAdapter(t *testing.T, q *quorateServers, f *callBudget) (ended <-chan struct{}, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.kill = cancel
	mapping, err := podgate.ParseMapping(podgate.DefaultMapping())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(portOf(t, k.webhookPort))
	if err != nil {
		t.Fatal(err)
	}
	settings := controller.Settings{
		Cluster: k.name, Mapping: mapping, Trusted: podgate.DefaultTrusted(), Refresh: time.Second,
		Namespace: "quorate-system", WebhookConfiguration: "quorate-kubernetes", WebhookNames: []string{"127.0.0.1"},
		WebhookHost: "127.0.0.1", WebhookPort: port, HealthAddress: "0", MetricsAddress: "0", NewClient: f.newClient,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := controller.Run(ctx, k.config(controllerToken), limitedQuorate{gate.Connect(q.client(t)), f}, settings)
		if err != nil && ctx.Err() == nil {
			t.Errorf("the adapter ended: %v", err)
		}
	}()
	return done, func() {
		cancel()
		<-done
	}
}

// TestKilledAtEveryCall kills the adapter at each of the calls that two pods need, once with and once without the call
// being carried out.
func TestKilledAtEveryCall(t *testing.T) {
	verify.Only(t)
	q, k := startQuorate(t, trees), startKubernetes(t, "steps")
	k.install(t)
	_, stop := k.runAdapter(t, q, &callBudget{left: math.MaxInt})
	k.addNamespace(t, "steps", "prod:west")
	stop()
	killed := map[string]int{}
	for call := 1; ; call++ {
		for _, carryOut := range []bool{false, true} {
			f := &callBudget{left: call, carryOut: carryOut}
			playTwoPods(t, q, k, f, fmt.Sprintf("p%d-%t", call, carryOut))
			if f.killedAt() == "" {
				t.Logf("killed at %d calls: %v", call-1, killed)
				if call < 10 || killed["Allocate"] < 2 || killed["remove the gate"] < 2 || killed["Release"] < 2 {
					t.Errorf("too few calls were cut off: %v", killed)
				}
				return
			}
			killed[f.killedAt()]++
		}
		if t.Failed() || call > 100 {
			t.Fatalf("stopped at call %d", call)
		}
	}
}

// playTwoPods lets one pod run and then another one, of which only one fits at a time.
func playTwoPods(t *testing.T, q *quorateServers, k *kubernetes, f *callBudget, name string) {
	t.Helper()
	ended, stop := k.runAdapter(t, q, f)
	defer func() { stop() }()
	restart := func() {
		select {
		case <-ended:
			ended, stop = k.runAdapter(t, q, &callBudget{left: math.MaxInt})
		default:
		}
	}
	names := []string{name + "-a", name + "-b"}
	for _, pod := range names {
		await(t, pod+" is created", func() bool {
			restart()
			return k.api(alice).Create(t.Context(), newPod("steps", pod, "3")) == nil
		})
	}
	ran := map[string]bool{}
	await(t, "both pods of "+name+" have run", func() bool {
		restart()
		if running := k.running("steps"); running > 4000 {
			t.Fatalf("%s: %d of 4000 run", name, running)
		}
		for _, pod := range names {
			current := k.pod("steps", pod)
			if current != nil && current.Spec.NodeName != "" && !ran[pod] {
				ran[pod] = true
				if err := k.finish(current); err != nil {
					t.Fatal(err)
				}
			}
		}
		return len(ran) == len(names)
	})
	await(t, "nothing is held after "+name, func() bool {
		restart()
		held, waiting := q.records(t)
		return len(held)+len(waiting) == 0
	})
	for _, pod := range names {
		if err := k.api(admin).Delete(t.Context(), k.pod("steps", pod), now); err != nil {
			t.Fatal(err)
		}
	}
}

// running is in thousandths of a processor.
func (k *kubernetes) running(namespace string) (sum int64) {
	var list corev1.PodList
	if err := k.api(admin).List(k.t.Context(), &list, client.InNamespace(namespace)); err != nil {
		k.t.Fatal(err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if len(pod.Spec.SchedulingGates) == 0 && pod.Status.Phase != corev1.PodSucceeded {
			sum += pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return sum
}
