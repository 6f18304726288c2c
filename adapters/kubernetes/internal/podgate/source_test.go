package podgate

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/adapters/gate"
)

// gated is a pod that the webhook has seen.
func gated(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := namedPod(name)
	pod.UID = types.UID("uid-" + name)
	pod.Labels[PodLabel], pod.Annotations[NodeAnnotation] = PodLabelValue, "prod:team"
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}, {Name: Gate}}
	change(pod)
	return pod
}

// world is a source on a fake API server.
type world struct {
	*Source
	api    client.WithWatch
	events *events.FakeRecorder
	budget bool // disruption budgets refuse evictions
	period int64
}

func newWorld(t *testing.T, pods ...client.Object) *world {
	t.Helper()
	w := &world{events: events.NewFakeRecorder(100)}
	base := fake.NewClientBuilder().WithObjects(pods...).WithStatusSubresource(&corev1.Pod{}).Build()
	w.api = interceptor.NewClient(base, interceptor.Funcs{
		SubResourceCreate: func(
			ctx context.Context, c client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption,
		) error {
			if w.budget {
				return apierrors.NewTooManyRequests("a disruption budget", 1)
			}
			w.period = *body.(*policyv1.Eviction).DeleteOptions.GracePeriodSeconds
			return c.SubResource(sub).Create(ctx, o, body, opts...)
		},
	})
	w.Source = &Source{Pods: w.api, Live: w.api, API: w.api, Events: w.events, Mapping: mapping(t)}
	return w
}

func (w *world) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, &pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return &pod
}

func (w *world) works(t *testing.T) map[string]gate.Work {
	t.Helper()
	list, err := w.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]gate.Work{}
	for _, work := range list {
		byKey[work.Key] = work
	}
	return byKey
}

func TestStates(t *testing.T) {
	deleted := metav1.Now()
	open := func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   gate.MemberState
	}{
		"closed":                    {func(*corev1.Pod) {}, gate.Closed},
		"deleted before it ran":     {func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }, gate.Ended},
		"open":                      {open, gate.Open},
		"another gate is closed":    {func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1] }, gate.Open},
		"deleted while it runs":     {func(p *corev1.Pod) { open(p); p.DeletionTimestamp = &deleted }, gate.Stopping},
		"succeeded":                 {func(p *corev1.Pod) { open(p); p.Status.Phase = corev1.PodSucceeded }, gate.Ended},
		"failed, and not yet gone":  {func(p *corev1.Pod) { open(p); p.Status.Phase = corev1.PodFailed }, gate.Ended},
		"lost with its node counts": {func(p *corev1.Pod) { open(p); p.Status.Phase = corev1.PodUnknown }, gate.Open},
	} {
		if got := stateOf(gated("p", test.change)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestPodsBecomeWork(t *testing.T) {
	priority := int32(7)
	group := func(p *corev1.Pod) {
		p.Labels[GroupLabel], p.Annotations[GroupSizeAnnotation] = "g", "2"
		p.Annotations[UserAnnotation] = "ann"
	}
	w := newWorld(t,
		gated("alone", func(p *corev1.Pod) { p.Spec.Priority = &priority }),
		gated("a", group), gated("b", group),
		gated("other", func(p *corev1.Pod) { p.Labels = map[string]string{} }),
	)
	works := w.works(t)
	alone, both := works["uid-alone"], works[groupKey("n", "g")]
	if len(works) != 2 || alone.Priority != 7 || len(alone.Members) != 1 || alone.Members[0].Claims[0].Node != "team" ||
		alone.Members[0].Claims[0].Amounts["vcore"] != 500 {
		t.Errorf("got %+v of %d", alone, len(works))
	}
	if both.Wanted != 2 || len(both.Members) != 2 || both.User != "ann" || both.Problem != "" {
		t.Errorf("got %+v", both)
	}
	mixed := newWorld(t, gated("a", group), gated("b", func(p *corev1.Pod) {
		group(p)
		p.Annotations[UserAnnotation] = "bob"
	}))
	if got := mixed.works(t)[groupKey("n", "g")].Problem; !strings.Contains(got, "different users") {
		t.Errorf("got %q", got)
	}
}

func TestOpen(t *testing.T) {
	w := newWorld(t, gated("p", func(*corev1.Pod) {}))
	m := w.works(t)["uid-p"].Members[0]
	for range 2 {
		if err := w.Open(t.Context(), gate.Work{}, m); err != nil {
			t.Fatal(err)
		}
		if gates := w.pod(t, "p").Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != "other" {
			t.Errorf("got %v", gates)
		}
	}
	later := newWorld(t, gated("p", func(p *corev1.Pod) { p.UID = "later" }))
	if err := later.Open(t.Context(), gate.Work{}, m); err != nil || !isClosed(later.pod(t, "p")) {
		t.Errorf("a later pod of the same name was opened, %v", err)
	}
}

func TestOpenWithACopyThatLags(t *testing.T) {
	w := newWorld(t, gated("p", func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[1:] }))
	m := w.works(t)["uid-p"].Members[0]
	w.Pods = newWorld(t, gated("p", func(*corev1.Pod) {})).api // has one gate more
	if err := w.Open(t.Context(), gate.Work{}, m); err != nil || isClosed(w.pod(t, "p")) {
		t.Errorf("%v, %v", err, w.pod(t, "p").Spec.SchedulingGates)
	}
}

func TestIsIdle(t *testing.T) {
	open := func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }
	inGroup := func(p *corev1.Pod) { open(p); p.Labels[GroupLabel] = "g" }
	w := newWorld(t, gated("closed", func(*corev1.Pod) {}), gated("open", open), gated("member", inGroup))
	for _, test := range []struct {
		key, pod, group string
		want            bool
	}{
		{"uid-closed", "closed", "", true},
		{"uid-open", "open", "", false},
		{"uid-gone", "gone", "", true},
		{"uid-earlier", "open", "", true},
		{groupKey("n", "g"), "", "g", false},
		{groupKey("n", "h"), "", "h", true},
	} {
		labels := map[string]string{labelNamespace: "n", labelPod: test.pod}
		if test.group != "" {
			labels = map[string]string{labelNamespace: "n", labelGroup: test.group}
		}
		if got, err := w.IsIdle(t.Context(), test.key, labels); err != nil || got != test.want {
			t.Errorf("%s: got %v, %v", test.key, got, err)
		}
	}
	if _, err := w.IsIdle(t.Context(), "x", nil); err == nil {
		t.Error("an allocation without labels was taken for idle")
	}
}

func TestEvict(t *testing.T) {
	open := func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }
	for name, test := range map[string]struct {
		left   time.Duration // 0 for a grant that has ended
		budget bool
		wait   bool // the pod stays, and it is tried again
		period int64
	}{
		"at once":                      {0, false, false, 30},
		"in time":                      {time.Hour, false, false, 30},
		"in short time":                {12 * time.Second, false, false, 9},
		"a budget may refuse":          {time.Hour, true, true, 0},
		"but not beyond the end":       {20 * time.Second, true, false, 0},
		"and not what has ended":       {0, true, false, 0},
		"the end has passed meanwhile": {-time.Second, false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gated("p", open))
			w.budget = test.budget
			until := time.Time{}
			if test.left != 0 {
				until = time.Now().Add(test.left)
			}
			err := w.Evict(t.Context(), gate.Work{}, w.works(t)["uid-p"].Members[0], until, "why")
			if stays := w.pod(t, "p") != nil; stays != test.wait || (err != nil) != test.wait {
				t.Errorf("the pod stays: %v, %v", stays, err)
			}
			if w.period != test.period {
				t.Errorf("the grace period is %d s, want %d", w.period, test.period)
			}
			if said := <-w.events.Events; !strings.Contains(said, "QuotaRevoked why") {
				t.Errorf("the event is %q", said)
			}
		})
	}
}

func TestTell(t *testing.T) {
	w := newWorld(t, gated("p", func(*corev1.Pod) {}))
	work := w.works(t)["uid-p"]
	for _, status := range []gate.Status{
		{Kind: gate.StatusWaiting, Text: "position 2"},
		{Kind: gate.StatusWaiting, Text: "position 2"},
		{Kind: gate.StatusWaiting, Text: "position 1"},
		{Kind: gate.StatusGranted, Text: "granted"},
	} {
		if err := w.Tell(t.Context(), work, status); err != nil {
			t.Fatal(err)
		}
		c := findCondition(w.pod(t, "p"))
		if c == nil || c.Message != status.Text || (c.Status == corev1.ConditionTrue) != (status.Kind == gate.StatusGranted) {
			t.Errorf("got %+v, want %v", c, status)
		}
	}
	close(w.events.Events)
	var said []string
	for e := range w.events.Events {
		said = append(said, e)
	}
	if len(said) != 2 || !strings.Contains(said[0], "position 2") || !strings.Contains(said[1], "granted") {
		t.Errorf("a changed position is not an event: %q", said)
	}
}

func TestNodes(t *testing.T) {
	for _, text := range []string{"", ":x", "a b", "t:/x", "t:x/", "t:x//y", "t:" + strings.Repeat("x", 1025)} {
		if _, _, err := parseNode(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, test := range []struct {
		node, other string
		want        bool
	}{
		{"t", "t", true},
		{"t:a", "t", true},
		{"t:a/b", "t:a", true},
		{"t:ab", "t:a", false},
		{"tt", "t", false},
		{"t", "t:a", false},
		{"tt:a", "t", false},
	} {
		if got := isWithin(test.node, test.other); got != test.want {
			t.Errorf("%s within %s: got %v", test.node, test.other, got)
		}
	}
}
