package clustertest

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/internal/verify"
)

// TestRules checks who may do what, groups, denials, evictions, and what happens while either side is away.
func TestRules(t *testing.T) {
	verify.Only(t)
	q, k := startQuorate(t, trees), startKubernetes(t, "rules")
	k.install(t)
	p := k.startAdapter(t, q)
	k.addNamespace(t, "rules", "prod:west")
	k.create(t, `{apiVersion: v1, kind: Namespace, metadata: {name: outside}}`)

	blocker := k.mustCreate(t, alice, newPod("rules", "blocker", "4"))
	await(t, "the blocker is opened", func() bool { return len(k.pod("rules", "blocker").Spec.SchedulingGates) == 0 })
	k.mustCreate(t, alice, newPod("rules", "gated", "1"))
	t.Run("other callers cannot open the gate", func(t *testing.T) {
		for _, user := range []string{alice, admin} {
			open := `[{"op": "remove", "path": "/spec/schedulingGates/0"}]`
			k.refused(t, user, "gated", open, "only the controller of Quorate")
		}
		if len(k.pod("rules", "gated").Spec.SchedulingGates) != 1 {
			t.Error("the gate was opened")
		}
	})
	t.Run("marks stay as they are", func(t *testing.T) {
		annotation := `[{"op": "replace", "path": "/metadata/annotations/quorate.io~1node", "value": "prod:east"}]`
		k.refused(t, alice, "gated", annotation, "cannot be changed")
		k.refused(t, alice, "gated", `[{"op": "remove", "path": "/metadata/labels/quorate.io~1quota"}]`, "cannot be changed")
		group := `[{"op": "add", "path": "/metadata/labels/quorate.io~1group", "value": "x"}]`
		k.refused(t, alice, "gated", group, "cannot be changed")
		k.refusedAt(t, alice, "blocker", "status", annotation, "cannot be changed")
	})
	t.Run("a running pod is not resized", func(t *testing.T) {
		resize := `[{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "3"}]`
		k.refusedAt(t, admin, "blocker", "resize", resize, "cannot be resized")
	})
	t.Run("marks cannot be forged", func(t *testing.T) {
		forged := newPod("outside", "forged", "1")
		forged.Labels = map[string]string{"quorate.io/quota": "gated"}
		k.refusedPod(t, admin, forged, "are set by the webhook")
		far := newPod("rules", "far", "1")
		far.Annotations = map[string]string{"quorate.io/node": "prod:east"}
		k.refusedPod(t, alice, far, "not at or below prod:west")
		named := newPod("rules", "named", "1")
		named.Annotations = map[string]string{"quorate.io/user": "bob"}
		k.refusedPod(t, alice, named, "may not create pods for the user bob")
		bound := newPod("rules", "bound", "1")
		bound.Spec.NodeName = "node"
		k.refusedPod(t, admin, bound, "schedulingGates")
	})
	t.Run("templates name their authors", func(t *testing.T) {
		k.refusedObject(t, alice, jobFor("rules", "bob"), "may not name the user bob")
		if err := k.api(alice).Create(t.Context(), jobFor("rules", "alice")); err != nil {
			t.Error(err)
		}
		pod := newPod("rules", "of-a-job", "1")
		pod.Annotations = map[string]string{"quorate.io/user": "alice"}
		if made := k.mustCreate(t, jobs, pod); made.Annotations["quorate.io/user"] != "alice" {
			t.Errorf("made %v", made.Annotations)
		}
		k.remove(t, "of-a-job")
	})
	t.Run("too large is denied, and said", func(t *testing.T) {
		k.mustCreate(t, alice, newPod("rules", "large", "5"))
		k.awaitReason(t, "large", "QuotaDenied", "more than the whole limit")
		k.awaitEvent(t, "large", "QuotaDenied")
		k.remove(t, "large")
	})
	t.Run("a released pod is evicted", func(t *testing.T) {
		q.run(t, "release", "rules/"+string(blocker.UID))
		k.awaitStopping(t, "blocker")
		k.awaitEvent(t, "blocker", "QuotaRevoked")
		k.remove(t, "blocker")
		await(t, "the next pod is opened", func() bool { return len(k.pod("rules", "gated").Spec.SchedulingGates) == 0 })
		k.remove(t, "gated")
		q.awaitEmpty(t)
	})
	t.Run("groups are all or nothing", func(t *testing.T) { k.playGroup(t, q) })
	t.Run("Quorate is away", func(t *testing.T) {
		k.mustCreate(t, alice, newPod("rules", "running", "1"))
		await(t, "the pod is opened", func() bool { return len(k.pod("rules", "running").Spec.SchedulingGates) == 0 })
		for _, s := range q.Servers {
			s.Kill()
		}
		k.mustCreate(t, alice, newPod("rules", "later", "1"))
		k.awaitReason(t, "later", "QuotaRequestFailed", "no server of Quorate answers")
		if pod := k.pod("rules", "running"); pod == nil || pod.DeletionTimestamp != nil {
			t.Error("a running pod was ended")
		}
		for _, s := range q.Servers {
			s.Start(t)
		}
		await(t, "the pod is opened", func() bool { return len(k.pod("rules", "later").Spec.SchedulingGates) == 0 })
	})
	t.Run("the adapter is away", func(t *testing.T) {
		p.Kill()
		k.refusedPod(t, alice, newPod("rules", "refused", "1"), "failed calling webhook")
		if held, _ := q.records(t); len(held) != 2 {
			t.Errorf("%v are held", held)
		}
		k.remove(t, "running")
		k.remove(t, "later")
		k.startAdapter(t, q)
		q.awaitEmpty(t)
	})
}

// TestRevokedLeases drains a node whose pods hold leases: they are evicted within the grace.
func TestRevokedLeases(t *testing.T) {
	verify.Only(t)
	q, k := startQuorate(t, trees), startKubernetes(t, "leases")
	k.install(t)
	k.startAdapter(t, q, "--lease-ttl", "168h")
	k.addNamespace(t, "rules", "prod:west")
	pod := newPod("rules", "drained", "1")
	period := int64(3)
	pod.Spec.TerminationGracePeriodSeconds = &period
	k.mustCreate(t, alice, pod)
	await(t, "the pod is scheduled", func() bool { return k.pod("rules", "drained").Spec.NodeName != "" })
	q.run(t, "node", "drain", "prod:west", "--grace", "30s", "--reason", "maintenance")
	k.awaitStopping(t, "drained")
	if held, _ := q.records(t); len(held) != 1 {
		t.Errorf("it stays held until it has ended, and %v are", held)
	}
	k.remove(t, "drained")
	q.awaitEmpty(t)
}

func (k *kubernetes) playGroup(t *testing.T, q *quorateServers) {
	t.Helper()
	names := []string{"group-a", "group-b", "group-c"}
	for i, name := range names {
		pod := newPod("rules", name, "1")
		pod.Labels = map[string]string{"quorate.io/group": "mpi"}
		pod.Annotations = map[string]string{"quorate.io/group-size": "3"}
		k.mustCreate(t, alice, pod)
		if i < len(names)-1 {
			k.awaitReason(t, name, "QuotaGroupIncomplete", fmt.Sprintf("%d of 3 members", i+1))
			if held, waiting := q.records(t); len(held)+len(waiting) > 0 {
				t.Errorf("%v and %v before all have arrived", held, waiting)
			}
		}
	}
	for _, name := range names {
		await(t, name+" is scheduled", func() bool { return k.pod("rules", name).Spec.NodeName != "" })
	}
	if held, _ := q.records(t); len(held) != 1 {
		t.Errorf("the group holds %v", held)
	}
	for _, name := range names {
		k.remove(t, name)
	}
	q.awaitEmpty(t)
}

func jobFor(namespace, user string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job-of-" + user}}
	job.Spec.Template.Spec = newPod("", "", "1").Spec
	job.Spec.Template.Annotations = map[string]string{"quorate.io/user": user}
	return job
}

func (k *kubernetes) mustCreate(t *testing.T, user string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if err := k.api(user).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.SchedulingGates) != 1 {
		t.Fatalf("%s has the gates %v", pod.Name, pod.Spec.SchedulingGates)
	}
	return pod
}

// refused patches a pod and wants an error that contains a text.
func (k *kubernetes) refused(t *testing.T, user, name, patch, text string) {
	t.Helper()
	err := k.api(user).Patch(t.Context(), k.pod("rules", name), client.RawPatch(types.JSONPatchType, []byte(patch)))
	wantError(t, err, text)
}

func (k *kubernetes) refusedAt(t *testing.T, user, name, subresource, patch, text string) {
	t.Helper()
	err := k.api(user).SubResource(subresource).Patch(t.Context(), k.pod("rules", name),
		client.RawPatch(types.JSONPatchType, []byte(patch)))
	wantError(t, err, text)
}

func (k *kubernetes) refusedPod(t *testing.T, user string, pod *corev1.Pod, text string) {
	t.Helper()
	k.refusedObject(t, user, pod, text)
}

func (k *kubernetes) refusedObject(t *testing.T, user string, object client.Object, text string) {
	t.Helper()
	wantError(t, k.api(user).Create(t.Context(), object), text)
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

func (k *kubernetes) awaitReason(t *testing.T, name, reason, text string) {
	t.Helper()
	await(t, name+" says "+reason, func() bool {
		c := conditionOf(k.pod("rules", name))
		return c != nil && c.Reason == reason && strings.Contains(c.Message, text)
	})
}

func (k *kubernetes) awaitEvent(t *testing.T, name, reason string) {
	t.Helper()
	await(t, name+" has an event "+reason, func() bool {
		var list corev1.EventList
		if err := k.api(admin).List(t.Context(), &list, client.InNamespace("rules")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].InvolvedObject.Name == name && list.Items[i].Reason == reason {
				return true
			}
		}
		return false
	})
}

func (k *kubernetes) awaitStopping(t *testing.T, name string) {
	t.Helper()
	await(t, name+" is told to end", func() bool {
		pod := k.pod("rules", name)
		return pod == nil || pod.DeletionTimestamp != nil
	})
}

// remove deletes a pod as a kubelet does when its containers have ended.
func (k *kubernetes) remove(t *testing.T, name string) {
	t.Helper()
	pod := k.pod("rules", name)
	if pod == nil {
		return
	}
	if err := client.IgnoreNotFound(k.api(admin).Delete(t.Context(), pod, now)); err != nil {
		t.Fatal(err)
	}
}
