package clustertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// TestPage follows docs/with-kubernetes.md from the first to the last line, in a guarded cluster: it runs the commands
// as written, applies what is shown, and lets pods of its templates run. TestPageImage runs the commands of the image.
func TestPage(t *testing.T) {
	verify.Only(t)
	g := openGuide(t)
	if got := len(g.blocks("sh")); got != 6 {
		t.Fatalf("the page has %d blocks of commands: run the new ones here", got)
	}
	k := startKubernetes(t, "page")
	g.set("KUBECONFIG", k.kubeconfig(t, admin))
	url := g.startGuarded(t)
	g.write(t, "prod.yaml", g.manifest(t))
	g.run(t, g.script(t, "quorate account create"))
	p := &pageNamespace{t: t, k: k, g: g, seen: map[string]bool{}}
	p.adapter = g.installAdapter(t, k, url)
	k.addNamespace(t, "ready", "prod") // returns when the policies apply
	p.applyShown()
	p.awaitScheduled("report", "sums-0", "mpi-7-0", "mpi-7-1", "mpi-7-2")
	p.seeOtherReasons()
	if got, want := slices.Sorted(maps.Keys(p.seen)), slices.Sorted(slices.Values(g.reasons())); !slices.Equal(got, want) {
		t.Errorf("pods have shown the reasons %v, the page has %v", got, want)
	}
	p.uninstall()
}

// pageNamespace is the namespace of the page, with the reasons that its pods have shown.
type pageNamespace struct {
	t       *testing.T
	k       *kubernetes
	g       *guide
	adapter *servertest.Process
	seen    map[string]bool
}

// create makes a pod of an administrator.
func (p *pageNamespace) create(name, cpu string) {
	p.t.Helper()
	p.k.mustCreate(p.t, admin, newPod("night", name, cpu))
}

func (p *pageNamespace) awaitReason(name, reason string) {
	p.t.Helper()
	await(p.t, name+" says "+reason, func() bool {
		c := conditionOf(p.k.pod("night", name))
		return c != nil && c.Reason == reason
	})
	p.seen[reason] = true
}

func (p *pageNamespace) awaitScheduled(names ...string) {
	p.t.Helper()
	for _, name := range names {
		await(p.t, name+" is scheduled", func() bool { return p.k.pod("night", name).Spec.NodeName != "" })
	}
}

// remove deletes a pod as a kubelet does when its containers have ended.
func (p *pageNamespace) remove(name string) {
	p.t.Helper()
	if err := p.k.api(admin).Delete(p.t.Context(), p.k.pod("night", name), now); client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
}

// applyShown creates the objects that the page shows. Its pod waits behind two others while a third one holds all.
func (p *pageNamespace) applyShown() {
	p.t.Helper()
	var kinds []string
	for _, block := range p.g.blocks("yaml")[1:] {
		for _, object := range p.k.create(p.t, block) {
			kinds = append(kinds, object.GetKind())
			switch template := templateOf(p.t, object.Object); {
			case object.GetKind() == "Namespace":
				p.fill()
			case object.GetKind() == "Pod":
				p.seeWhyItWaits()
			case template != nil:
				template.Namespace, template.Name = object.GetNamespace(), object.GetName()
				p.playReplicas(template)
			}
		}
	}
	if got := strings.Join(kinds, " "); got != "Namespace Pod Job Job" {
		p.t.Errorf("the page has %s", got)
	}
}

// fill takes the whole limit of the page's node, and lets two pods wait for it.
func (p *pageNamespace) fill() {
	p.t.Helper()
	p.create("large", "80")
	p.awaitScheduled("large")
	for _, name := range []string{"first", "second"} {
		p.create(name, "1")
		p.awaitReason(name, "QuotaWaiting")
	}
}

// seeWhyItWaits lets kubectl and quorate show the pod of the page as the page does, and then makes room for it.
func (p *pageNamespace) seeWhyItWaits() {
	p.t.Helper()
	block := p.g.script(p.t, "kubectl describe pod")
	want := shown(p.t, block)
	var out string
	await(p.t, "kubectl shows\n"+want.String(), func() bool {
		out = p.g.run(p.t, block)
		return want.MatchString(out)
	})
	_, columns, found := strings.Cut(out, "NAME ")
	if !found || strings.Count(columns, "\n") != 5 || !strings.Contains(columns, "position 3 for vcore at prod:batch") {
		p.t.Errorf("the columns of four pods are\n%s", columns)
	}
	id := "east/" + string(p.k.pod("night", "report").UID)
	for command, says := range map[string]string{
		"quorate allocation show " + id: "night", "quorate explain " + id: "limit 80, used 80, requested 2",
		"quorate queue list": id, "quorate usage prod:batch": "vcore",
	} {
		if out := p.g.run(p.t, command); !strings.Contains(out, says) {
			p.t.Errorf("%s does not say %q:\n%s", command, says, out)
		}
	}
	p.remove("large")
	p.awaitScheduled("first", "second", "report")
	p.awaitReason("report", "QuotaGranted")
}

// templateOf returns nil if the object is not a Job.
func templateOf(t *testing.T, object map[string]any) *corev1.Pod {
	t.Helper()
	var job batchv1.Job
	if object["kind"] != "Job" {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &job); err != nil {
		t.Fatal(err)
	}
	return &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
}

// playReplicas makes pods of a template in the name of the job controller: three of a group, one of others.
func (p *pageNamespace) playReplicas(template *corev1.Pod) {
	p.t.Helper()
	count := 1
	if template.Labels["quorate.io/group"] != "" {
		count = 3
	}
	for i := range count {
		pod := template.DeepCopy()
		pod.Name = fmt.Sprint(template.Name, "-", i)
		if made := p.k.mustCreate(p.t, jobs, pod); made.Annotations["quorate.io/node"] != "prod:batch" {
			p.t.Errorf("made %v", made.Annotations)
		}
		if i < count-1 {
			p.awaitReason(pod.Name, "QuotaGroupIncomplete")
		}
	}
}

// seeOtherReasons makes pods that are refused for good, and ends one by its allocation.
func (p *pageNamespace) seeOtherReasons() {
	p.t.Helper()
	p.create("oversized", "81")
	p.awaitReason("oversized", "QuotaDenied")
	p.k.addNamespace(p.t, "lost", "absent")
	p.k.mustCreate(p.t, alice, newPod("lost", "lost", "1"))
	await(p.t, "the pod at a tree that does not exist says so", func() bool {
		c := conditionOf(p.k.pod("lost", "lost"))
		return c != nil && c.Reason == "QuotaRequestFailed"
	})
	p.seen["QuotaRequestFailed"] = true
	p.g.run(p.t, "quorate release east/"+string(p.k.pod("night", "first").UID))
	await(p.t, "the event of the eviction is described", func() bool {
		return strings.Contains(p.g.run(p.t, "kubectl describe pod -n night first"), "QuotaRevoked")
	})
	p.seen["QuotaRevoked"] = true
	p.remove("first")
}

// uninstall runs the end of the page. Pods that run stay and hold what they held; nothing else of the adapter stays.
func (p *pageNamespace) uninstall() {
	p.t.Helper()
	p.k.playNamespaceController(p.t, "quorate-system")
	p.g.run(p.t, p.g.script(p.t, "kubectl label namespace night"))
	p.adapter.Kill() // as its pods would end with the Deployment
	if left := p.g.run(p.t, "kubectl get -k adapters/kubernetes/deploy --ignore-not-found -o name"); left != "" {
		p.t.Errorf("the adapter was removed, but there are\n%s", left)
	}
	var list corev1.PodList
	if err := p.k.api(admin).List(p.t.Context(), &list, client.InNamespace("night")); err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	if want := []string{"mpi-7-0", "mpi-7-1", "mpi-7-2", "report", "second", "sums-0"}; !slices.Equal(names, want) {
		p.t.Errorf("the pods %v stay, want %v", names, want)
	}
	await(p.t, "pods are created without a gate", func() bool {
		pod := newPod("night", "free", "1")
		err := p.k.api(admin).Create(p.t.Context(), pod, client.DryRunAll)
		return err == nil && len(pod.Spec.SchedulingGates) == 0 && pod.Labels["quorate.io/quota"] == ""
	})
	p.releaseAll()
}

// releaseAll runs the commands of the page that release what the remaining pods hold.
func (p *pageNamespace) releaseAll() {
	p.t.Helper()
	const records = "quorate allocation list --prefix east/ --jq '.allocations[].id'"
	if held := p.g.run(p.t, records); strings.Count(held, "east/") != 4 {
		p.t.Errorf("three pods and a group hold\n%s", held)
	}
	if out := p.g.run(p.t, p.g.script(p.t, "quorate allocation list --prefix")); strings.Count(out, "east/") != 8 {
		p.t.Errorf("four are listed, and then released:\n%s", out)
	}
	if left := p.g.run(p.t, records); left != "" {
		p.t.Errorf("after the release there are\n%s", left)
	}
}
