package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherSystemsConfigurations converts each configuration and applies the manifest. A plan of the original file must
// then have nothing to change.
func TestOtherSystemsConfigurations(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	folder := t.TempDir()
	for format, sample := range map[string]string{
		"zuul": "../../examples/zuul/nodepool.yaml", "keystone": "../../examples/keystone/limits.json",
		"quota-manager": "../../examples/quota-manager/forest.json", "yunikorn": "../../examples/yunikorn/queues.yaml",
		"boskos": "../../compat/boskos/testdata/boskos.yaml",
	} {
		converted := runCommand(t, "manifest", "convert", "--from", format, sample)
		file := filepath.Join(folder, format+".yaml")
		if err := os.WriteFile(file, []byte(converted.stdout), 0o600); err != nil || converted.code != 0 {
			t.Fatalf("manifest convert --from %s: exit code %d, %v\n%s", format, converted.code, err, converted.stderr)
		}
		playSteps(t, f, []step{
			{"plan -f " + file, 0, "tree"},
			{"apply -f " + file, 0, "(revision"},
			{"plan --from " + format + " -f " + sample, 0, "nothing to change"},
			{"manifest convert --from " + format + " testdata/nodepool-broken.yaml", 1, "testdata/nodepool-broken.yaml: "},
		})
	}
}

// TestConfigurationsInEnvelopes reads configurations in the forms in which repositories have them.
func TestConfigurationsInEnvelopes(t *testing.T) {
	t.Parallel()
	const configMap = "apiVersion: v1\nkind: ConfigMap\ndata:\n  "
	const queues = "queues.yaml: |\n    partitions: [{name: default, queues: [{name: root, queues: [{name: team, " +
		"resources: {max: {vcore: 4}}}]}]}]\n"
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		format, file string
		code         int
		want         string
	}{
		{"yunikorn", file("map.yaml", configMap+queues), 0, "team: {limits: {vcore: 4}}"},
		{"yunikorn", file("values.yaml", "yunikornDefaults:\n  "+queues), 0, "team: {limits: {vcore: 4}}"},
		{"yunikorn", file("wrong.yaml", configMap+"queues.yaml: |\n    partitons: []\n"), 1, "line 5: unknown key"},
		{"yunikorn", file("secret.yaml", "apiVersion: v1\nkind: Secret\n"), 1, "hand over the configuration itself"},
		{
			"boskos", file("boskos.yaml", configMap+"config: |\n    resources:\n    - {type: cloud, state: dirty, "+
				"names: [p-1]}\n"), 0, "p-1",
		},
		{
			"quota-manager", file("subtree.yaml", "kind: QuotaSubtree\nmetadata: {name: a, labels: {tree: ctx}}\n"+
				"spec: {children: [{name: root, quotas: {requests: {cpu: 1500m}}}]}\n"), 0, "cpu: 1500m",
		},
		{
			"keystone", file("limits.json", `[{"ID": "l1", "Project ID": "p1", "Resource Name": "cores", `+
				`"Resource Limit": 10, "Service ID": "nova"}]`), 0, "cores: 10",
		},
	} {
		end := runCommand(t, "manifest", "convert", "--from", test.format, test.file)
		if out := end.stdout + end.stderr; end.code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("manifest convert --from %s %s: exit code %d, want %d and %q\n%s", test.format,
				filepath.Base(test.file), end.code, test.code, test.want, out)
		}
	}
}
