package main_test

import (
	"os"
	"path/filepath"
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
		converted := runCommand(t, "convert", "--from", format, sample)
		file := filepath.Join(folder, format+".yaml")
		if err := os.WriteFile(file, []byte(converted.stdout), 0o600); err != nil || converted.code != 0 {
			t.Fatalf("convert --from %s: exit code %d, %v\n%s", format, converted.code, err, converted.stderr)
		}
		playSteps(t, f, []step{
			{"plan -f " + file, 0, "tree"},
			{"apply -f " + file, 0, "(revision"},
			{"plan --from " + format + " -f " + sample, 0, "nothing to change"},
			{"convert --from " + format + " testdata/nodepool-broken.yaml", 1, "testdata/nodepool-broken.yaml: "},
		})
	}
}
