package podgate

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func mapping(t *testing.T) Mapping {
	t.Helper()
	m, err := ParseMapping([]string{"cpu=vcore:milli", "memory=memory", "pods=pods"})
	if err != nil {
		t.Fatal(err)
	}
	return m[:2]
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
	}}
}

// namedPod is a pod that requests half a processor.
func namedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, UID: "uid-x", Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: requests("500m", "1Gi")}}},
	}
}

func TestStamp(t *testing.T) {
	jobs := authenticationv1.UserInfo{Username: "job-controller", Groups: []string{"system:serviceaccounts:kube-system"}}
	ann := authenticationv1.UserInfo{Username: "ann"}
	for name, test := range map[string]struct {
		author authenticationv1.UserInfo
		change func(*corev1.Pod)
		want   string // the node and the user, or a part of the error
	}{
		"the author is the user":     {ann, func(*corev1.Pod) {}, "prod:team ann"},
		"a node below":               {ann, annotate(NodeAnnotation, "prod:team/batch"), "prod:team/batch ann"},
		"a node beside":              {ann, annotate(NodeAnnotation, "prod:teams"), "not at or below prod:team"},
		"another tree":               {ann, annotate(NodeAnnotation, "dev:team"), "not at or below prod:team"},
		"no node":                    {ann, annotate(NodeAnnotation, "prod:/x"), "is not a node"},
		"the user itself":            {ann, annotate(UserAnnotation, "ann"), "prod:team ann"},
		"another user":               {ann, annotate(UserAnnotation, "bob"), "ann may not create pods for the user bob"},
		"a controller names no user": {jobs, func(*corev1.Pod) {}, "prod:team "},
		"a controller names a user":  {jobs, annotate(UserAnnotation, "bob"), "prod:team bob"},
		"an application needs a user": {
			jobs, func(p *corev1.Pod) { p.Labels[ApplicationLabel] = "app" }, "an application needs a user",
		},
		"a size needs a group": {ann, annotate(GroupSizeAnnotation, "2"), "which names the group"},
		"a group needs a size": {
			ann, func(p *corev1.Pod) { p.Labels[GroupLabel] = "g" }, "is not a number of pods from 1 to 1000",
		},
		"a group that is too large": {ann, func(p *corev1.Pod) {
			p.Labels[GroupLabel], p.Annotations[GroupSizeAnnotation] = "g", "1001"
		}, "is not a number of pods from 1 to 1000"},
		"the largest group": {ann, func(p *corev1.Pod) {
			p.Labels[GroupLabel], p.Annotations[GroupSizeAnnotation] = "g", "1000"
		}, "prod:team ann"},
		"nothing is counted": {ann, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, "requests nothing that is counted here (cpu, memory)"},
		"a user with a long name": {
			authenticationv1.UserInfo{Username: strings.Repeat("x", 257)}, func(*corev1.Pod) {}, "256 are allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := namedPod("p")
			test.change(pod)
			s := &Stamper{Mapping: mapping(t), Trusted: DefaultTrusted()}
			err := s.stamp(pod, "prod:team", test.author)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || isClosed(pod) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if got := pod.Annotations[NodeAnnotation] + " " + pod.Annotations[UserAnnotation]; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if !isClosed(pod) || pod.Labels[PodLabel] != PodLabelValue {
				t.Errorf("the gate is open: %+v", pod)
			}
		})
	}
}

func annotate(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[name] = value }
}

func TestStampingTwiceAddsOneGate(t *testing.T) {
	pod, s := namedPod("p"), &Stamper{Mapping: mapping(t)}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}}
	for range 2 {
		if err := s.stamp(pod, "prod", authenticationv1.UserInfo{Username: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	if gates := pod.Spec.SchedulingGates; len(gates) != 2 || gates[0].Name != "other" || gates[1].Name != Gate {
		t.Errorf("got %v", gates)
	}
}

func TestTheNodeOfANamespaceIsReadAgain(t *testing.T) {
	namespace := func(node string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "n", Annotations: map[string]string{NodeAnnotation: node},
		}}
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "n"}}
	ctx := admission.NewContextWithRequest(context.Background(), request)
	empty, filled := fake.NewFakeClient(), fake.NewFakeClient(namespace("prod:team"))
	s := &Stamper{Namespaces: empty, Live: filled, Mapping: mapping(t)}
	pod := namedPod("p")
	if err := s.Default(ctx, pod); err != nil || pod.Annotations[NodeAnnotation] != "prod:team" {
		t.Errorf("got %v, %v", pod.Annotations, err)
	}
	s.Live = fake.NewFakeClient(namespace(""))
	err := s.Default(ctx, namedPod("q"))
	if err == nil || !strings.Contains(err.Error(), "no annotation "+NodeAnnotation) {
		t.Errorf("got %v", err)
	}
}

func TestAmounts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := namedPod("p")
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "sidecar", Resources: requests("100m", "1"), RestartPolicy: &always},
		{Name: "init", Resources: requests("2", "1")},
	}
	pod.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("50m")}
	m, err := ParseMapping([]string{"cpu=vcore:milli", "memory=memory", "pods=pods", "nvidia.com/gpu=gpu"})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Amounts(pod)
	if got["vcore"] != 2150 || got["memory"] != 1<<30+1 || got["pods"] != 1 || len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

// TestAmountsFollowTheOrderOfContainers: sidecars count beside the init containers that are listed behind them, requests
// of the pod itself replace the sum, and ResourceClaims do not count.
func TestAmountsFollowTheOrderOfContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}}
	}
	sidecar, early := container("1"), container("5")
	sidecar.RestartPolicy = &always
	claims := corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}
	claims.Containers = []corev1.Container{{
		Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
	}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want int64
	}{
		"sidecar, then init": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, early}}, 6},
		"init, then sidecar": {corev1.PodSpec{InitContainers: []corev1.Container{early, sidecar}}, 5},
		"both run":           {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, container("500m")}}, 2},
		"the pod itself": {corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar, early},
			Resources:      &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}},
		}, 3},
		"claims": {claims, 0},
	} {
		if c.spec.Containers == nil {
			c.spec.Containers = []corev1.Container{container("1")}
		}
		m, err := ParseMapping([]string{"cpu=cpu"})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Amounts(&corev1.Pod{Spec: c.spec}); got["cpu"] != c.want {
			t.Errorf("%s: got %v, want %d", name, got, c.want)
		}
	}
}

func TestMappingsThatAreRefused(t *testing.T) {
	many := make([]string, MaxResources+1)
	for _, texts := range [][]string{
		nil, many, {"cpu"}, {"=x"}, {"cpu="}, {"cpu=x:bytes"}, {"cpu=x", "cpu=y"}, {"cpu=x", "memory=x"},
	} {
		if m, err := ParseMapping(texts); err == nil || !strings.HasPrefix(err.Error(), "resource: ") {
			t.Errorf("%v: got %v, %v", texts, m, err)
		}
	}
}
