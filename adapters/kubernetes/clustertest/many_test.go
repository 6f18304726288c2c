package clustertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

const (
	podsPerCluster = 500
	limitOfMany    = 40
)

// observer knows what runs in all clusters. It counts a pod from when it sees that its gate is open until the kubelet
// is about to end it, which is before the adapter can know, so it never counts too much.
type observer struct {
	t     *testing.T
	limit int64

	mu      sync.Mutex
	running map[string]int64
	ended   map[string]bool
	sum     int64
	most    int64
}

func (o *observer) opened(pod *corev1.Pod) (isNew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := string(pod.UID)
	if o.ended[id] || o.running[id] > 0 {
		return false
	}
	o.running[id] = pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	o.sum += o.running[id]
	o.most = max(o.most, o.sum)
	if o.sum > o.limit {
		o.t.Errorf("%d of %d run when %s was opened", o.sum, o.limit, pod.Name)
	}
	return true
}

func (o *observer) ends(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := string(pod.UID)
	o.sum -= o.running[id]
	delete(o.running, id)
	o.ended[id] = true
}

func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ended)
}

// follow observes the pods of a cluster, and ends each of them some time after the scheduler has given it a node.
func (o *observer) follow(t *testing.T, k *kubernetes) {
	t.Helper()
	pods, err := cache.New(k.config(admin), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := pods.GetInformer(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	var started sync.Map
	see := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if !ok || len(pod.Spec.SchedulingGates) > 0 || pod.Status.Phase == corev1.PodSucceeded {
			return
		}
		o.opened(pod)
		if _, twice := started.LoadOrStore(pod.UID, true); pod.Spec.NodeName == "" || twice {
			if pod.Spec.NodeName == "" {
				started.Delete(pod.UID)
			}
			return
		}
		go func() {
			time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
			o.ends(pod)
			if err := k.finish(pod.DeepCopy()); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}()
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, object any) { see(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pods.Start(ctx) // it ends with the context
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if !pods.WaitForCacheSync(ctx) {
		t.Fatal("the pods cannot be watched")
	}
}

// TestTwoClustersShareATree lets a thousand pods of two clusters run within one limit, while the adapters and the
// leader of Quorate are killed again and again.
func TestTwoClustersShareATree(t *testing.T) {
	verify.Only(t)
	q := startQuorate(t, fmt.Sprintf(`trees:
  prod:
    resources: {vcore: {unit: milli}, memory: {unit: bytes}}
    limits: {vcore: %d, memory: unlimited}
    nodes: {east: {}, west: {}}
`, limitOfMany))
	o := &observer{t: t, limit: limitOfMany * 1000, running: map[string]int64{}, ended: map[string]bool{}}
	var creators, killers sync.WaitGroup
	stop := make(chan struct{})
	began := time.Now()
	for _, name := range []string{"east", "west"} {
		k := startKubernetes(t, name)
		k.install(t)
		p := k.startAdapter(t, q)
		k.addNamespace(t, "many", "prod:"+name)
		o.follow(t, k)
		creators.Go(func() { createPods(t, k) })
		killers.Go(func() { killAgain(t, k, q, p, stop) })
	}
	creators.Wait()
	t.Logf("created after %v", time.Since(began).Round(time.Second))
	q.restartLeader(t)
	for deadline := time.Now().Add(6 * time.Minute); o.count() < 2*podsPerCluster; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			held, waiting := q.records(t)
			t.Errorf("%d of %d pods have run, %d held, %d wait", o.count(), 2*podsPerCluster, len(held), len(waiting))
			break
		}
	}
	close(stop)
	killers.Wait()
	q.awaitEmpty(t)
	t.Logf("%d pods in %v, at most %d of %d at a time", o.count(), time.Since(began).Round(time.Second), o.most, o.limit)
	if o.most < o.limit/2 {
		t.Errorf("the limit was never nearly used: %d of %d", o.most, o.limit)
	}
}

// createPods creates pods of different sizes, and again those that fail while the webhook is away.
func createPods(t *testing.T, k *kubernetes) {
	api := k.api(alice)
	var places [8]struct{}
	var workers sync.WaitGroup
	for worker := range places {
		workers.Go(func() {
			for i := worker; i < podsPerCluster; i += len(places) {
				pod := newPod("many", fmt.Sprint("pod-", i), fmt.Sprint(1+i%3))
				for api.Create(t.Context(), pod.DeepCopy()) != nil && t.Context().Err() == nil {
					time.Sleep(200 * time.Millisecond)
				}
			}
		})
	}
	workers.Wait()
}

// killAgain kills the adapter of a cluster every few seconds, and starts it again.
func killAgain(t *testing.T, k *kubernetes, q *quorateServers, p *servertest.Process, stop <-chan struct{}) {
	for kills := 1; ; kills++ {
		select {
		case <-stop:
			t.Logf("the adapter of %s was killed %d times", k.name, kills-1)
			return
		case <-time.After(time.Duration(2000+rand.IntN(5000)) * time.Millisecond):
		}
		p.Kill()
		p = k.startAdapter(t, q)
	}
}
