package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManifestCreate: what is written for every combination of answers is applied as it is, and does what was answered.
func TestManifestCreate(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	number := 0
	sharesOfAll := []string{
		"--share gpu=4", "--share account=4:items --share memory=2Ti --share cpu=4.5", "--share gpu=4 --share no=3",
	}
	for _, borrowing := range []string{"none", "unused", "reclaim"} {
		for _, waiting := range []bool{true, false} {
			for _, renewing := range []bool{true, false} {
				for _, shares := range sharesOfAll {
					number++
					tree := fmt.Sprintf("farm%d", number)
					line := fmt.Sprintf("manifest create %s %s --team web --team data --team off --borrowing %s --waiting=%t "+
						"--renewing=%t", tree, shares, borrowing, waiting, renewing)
					made := runCommand(t, strings.Fields(line)...)
					if made.code != 0 || made.stderr != "" {
						t.Fatalf("%s: %d %s", line, made.code, made.stderr)
					}
					file := filepath.Join(t.TempDir(), "farm.yaml")
					if err := os.WriteFile(file, []byte(made.stdout), 0o600); err != nil {
						t.Fatal(err)
					}
					applied := runCommand(t, "apply", "-f", file, "--server", f.baseURL())
					if applied.code != 0 || strings.Contains(applied.stderr, "warning") {
						t.Errorf("%s: %d %s\n%s", line, applied.code, applied.stderr, made.stdout)
					}
					playSteps(t, f, []step{{"plan -f " + file + " --exit-code", 0, "nothing to change"}})
					if strings.HasPrefix(shares, "--share gpu") {
						playDraft(t, f, tree, borrowing, waiting, renewing)
					}
				}
			}
		}
	}
	playSteps(t, f, []step{
		{"manifest create farm --share gpu=4", 2, "who shares it?"},
		{"manifest create farm --team web", 2, "what is shared?"},
		{"manifest create farm --share gpu=4 --team web --team web", 2, "web is named twice"},
		{"manifest create farm --share gpu=4 --share gpu=5 --team web", 2, "gpu is named twice"},
		{"manifest create farm --share gpu=4 --team web --borrowing some", 2, "write none, unused or reclaim"},
		{"manifest create farm:web --share gpu=4 --team web", 2, "not a valid tree name"},
		{"init", 2, `did you mean "quorate manifest create"?`},
	})
}

// playDraft has three teams with 2, 1 and 1 of 4 GPUs.
func playDraft(t *testing.T, f serverFlags, tree, borrowing string, waiting, renewing bool) {
	t.Helper()
	beyond := map[string]int{"none": 3, "unused": 0, "reclaim": 0}[borrowing]
	own := map[string]int{"none": 0, "unused": 3, "reclaim": 0}[borrowing]
	playSteps(t, f, []step{
		{fmt.Sprintf("allocate --id %s-a --at %s:web --amount gpu=3", tree, tree), beyond, ""},
		{fmt.Sprintf("allocate --id %s-b --at %s:data --amount gpu=1", tree, tree), 0, ""},
		{fmt.Sprintf("allocate --id %s-c --at %s:off --amount gpu=1", tree, tree), own, ""},
		{
			fmt.Sprintf("manifest export %s", tree), 0,
			map[bool]string{true: "overtake: 5m", false: "version: 1"}[waiting],
		},
		{
			fmt.Sprintf("manifest export %s", tree), 0,
			map[bool]string{true: "default-ttl: 5m", false: "version: 1"}[renewing],
		},
	})
}
