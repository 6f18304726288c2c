package quotamanager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const subtrees = `
apiVersion: quota.codeflare.dev/v1alpha1
kind: QuotaSubtree
metadata: {name: top, labels: {tree: ctx}}
spec: {children: [{name: root, quotas: {requests: {cpu: 1500m, memory: 900Mi, gpu: "2"}}}]}
---
apiVersion: quota.codeflare.dev/v1alpha1
kind: QuotaSubtree
metadata: {name: below, labels: {tree: ctx}}
spec:
  parent: root
  children:
    - name: gold
      quotas: {hardLimit: true, requests: {cpu: 1, memory: 6e8, gpu: 1}}
`

// TestSubtrees: the objects of a tree make the tree that the dispatcher makes of them.
func TestSubtrees(t *testing.T) {
	c, err := Convert([]byte(subtrees), Options{})
	if err != nil {
		t.Fatal(err)
	}
	limits := func(cpu, memory, gpu int64) map[string]*quoratev1.Limit {
		limit := func(n int64) *quoratev1.Limit { return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}} }
		return map[string]*quoratev1.Limit{"cpu": limit(cpu), "memory": limit(memory), "gpu": limit(gpu)}
	}
	want := []*quoratev1.Tree{{
		Name: "ctx", Policy: policy, Labels: map[string]string{RootLabel: "root"}, Limits: limits(1500, 900<<20, 2),
		Resources: []*quoratev1.Resource{
			{Name: "cpu", Unit: quoratev1.Unit_UNIT_MILLI},
			{Name: "gpu", Unit: quoratev1.Unit_UNIT_COUNT},
			{Name: "memory", Unit: quoratev1.Unit_UNIT_BYTES},
		},
		Nodes: []*quoratev1.Node{{Path: "gold", Hard: true, Limits: limits(1000, 6e8, 1)}},
	}}
	if diff := cmp.Diff(want, c.Trees, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestSubtreesRefused(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"no tree":     {"labels: {tree: ctx}}", "labels: {}}", `QuotaSubtree "top" has no label "tree"`},
		"twice":       {"name: gold", "name: root", `node "root" is in QuotaSubtree "top" too: name it once`},
		"a fraction":  {`gpu: "2"`, "gpu: 500m", `the quota of gpu is "500m", which is not a whole number`},
		"no quantity": {"1500m", "plenty", `the quota of cpu is "plenty", which is not a quantity of Kubernetes`},
		"too much":    {"900Mi", "9Ei", "which is more than 4611686018427387903 base units"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Convert([]byte(strings.Replace(subtrees, test.old, test.new, 1)), Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Convert answers %v, want an error that says %q", err, test.want)
			}
		})
	}
}

// TestBaseUnits: quantities are read as Kubernetes reads them, and rounded up.
func TestBaseUnits(t *testing.T) {
	for _, test := range []struct{ resource, text, want string }{
		{"cpu", "1", "1000"},
		{"cpu", "0.1", "100"},
		{"cpu", "100u", "1"},
		{"cpu", "1e1", "10000"},
		{"cpu", ".5", "500"},
		{"memory", "1Ki", "1024"},
		{"memory", "1.5G", "1500000000"},
		{"memory", "1m", "1"},
		{"memory", "2.", "2"},
		{"pods", "1k", "1000"},
		{"pods", "+3", "3"},
		{"pods", "1E", "1000000000000000000"},
		{"pods", "1E3", "1000"},
	} {
		if got, err := baseUnits(test.resource, test.text); got != test.want || err != nil {
			t.Errorf("%s of %s are %s, %v; want %s", test.text, test.resource, got, err, test.want)
		}
	}
}

// TestTreeInConfigMap: a document may be the text in a ConfigMap.
func TestTreeInConfigMap(t *testing.T) {
	c, err := Convert([]byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: trees}
data:
  ctx: '{"kind": "QuotaTree", "metadata": {"name": "T"}, "spec": {"resourceNames": ["cpu"], "nodes": {"r": {"parent":
    "nil", "quota": {"cpu": "4"}}}}}'
`), Options{})
	if err != nil || len(c.Trees) != 1 || c.Trees[0].GetLimits()["cpu"].GetAmount() != 4 {
		t.Errorf("Convert answers %v, %v", c, err)
	}
}
