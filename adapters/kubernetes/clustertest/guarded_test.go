package clustertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// guardedTrees is what docs/with-kubernetes.md advises for the account of a cluster.
const guardedTrees = `trees:
  prod:
    resources: {vcore: {unit: milli}, memory: {unit: bytes}}
    limits: {vcore: 4, memory: unlimited}
    bindings:
      - {role: broker, subjects: [account guarded], hold-as: any, max-priority: 1000000000}
    nodes: {west: {}}
`

// TestGuardedCluster lets the adapter work with the rights of its account only, for a user with a priority.
func TestGuardedCluster(t *testing.T) {
	verify.Only(t)
	secret := writeFile(t, "bootstrap.secret", strings.Repeat("s", 43)+"\n")
	folder := t.TempDir()
	owner, own := filepath.Join(folder, "admin.token"), filepath.Join(folder, "guarded.token")
	q := startServers(t, "--bootstrap-secret-file", secret)
	q.run(t, "token", "create", "--secret-file", secret, "--out", owner)
	q.token = owner
	q.run(t, "account", "create", "guarded")
	q.run(t, "token", "create", "guarded", "--out", own)
	q.run(t, "apply", "-f", writeFile(t, "trees.yaml", guardedTrees))
	q.run(t, "access", "set", "watching")
	q.run(t, "access", "set", "guarded")

	k := startKubernetes(t, "guarded")
	k.install(t)
	k.create(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}`)
	k.startAdapter(t, q, "--token-file", own)
	k.addNamespace(t, "rules", "prod:west")
	for _, name := range []string{"first", "second"} {
		pod := newPod("rules", name, "3")
		pod.Spec.PriorityClassName = "high"
		k.mustCreate(t, alice, pod)
		await(t, name+" says how it stands", func() bool { return conditionOf(k.pod("rules", name)) != nil })
	}
	await(t, "the first pod is scheduled", func() bool { return k.pod("rules", "first").Spec.NodeName != "" })
	k.awaitReason(t, "second", "QuotaWaiting", "prod holds 3000 of 4000 vcore")
	if list := q.run(t, "allocation", "list"); !strings.Contains(list, "guarded/") {
		t.Error(list)
	}
	k.remove(t, "first")
	await(t, "the second pod is scheduled", func() bool { return k.pod("rules", "second").Spec.NodeName != "" })
	k.remove(t, "second")
	await(t, "nothing is held", func() bool { return !strings.Contains(q.run(t, "allocation", "list"), "guarded/") })
}
