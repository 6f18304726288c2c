package planted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/overlay"
)

const sampleSource = "package p\n\nfunc a() int {\n\treturn 1\n}\n\nfunc b() int {\n\treturn 1\n}\n"

// TestPatches because a patch that silently does nothing, or something else, would plant no bug.
func TestPatches(t *testing.T) {
	const file = "A comment.\n\n--- a/p/p.go\n+++ b/p/p.go\n"
	for name, tt := range map[string]struct{ patch, want, err string }{
		"applies": {
			patch: file + "@@ -90,9 +1 @@ func b\n func b() int {\n-\treturn 1\n+\treturn 2\n }\n",
			want:  strings.Replace(sampleSource, "b() int {\n\treturn 1", "b() int {\n\treturn 2", 1),
		},
		"an empty line": {
			patch: file + "@@ @@\n\n func b() int {\n+\tpanic(0)\n",
			want:  strings.Replace(sampleSource, "b() int {\n", "b() int {\n\tpanic(0)\n", 1),
		},
		"the first line": {
			patch: file + "@@ @@\n-package p\n+package q\n",
			want:  strings.Replace(sampleSource, "package p", "package q", 1),
		},
		"gone": {
			patch: file + "@@ -3 +3 @@ func c\n func c() int {\n-\treturn 1\n",
			err:   `p/p.go: the lines of hunk "@@ -3 +3 @@ func c" are there 0 times`,
		},
		"ambiguous":      {patch: file + "@@ @@\n-\treturn 1\n+\treturn 2\n", err: "are there 2 times"},
		"part of a line": {patch: file + "@@ @@\n-return 1\n+return 2\n", err: "are there 0 times"},
		"another file": {
			patch: strings.ReplaceAll(file, "p.go", "q.go") + "@@ @@\n-package p\n+package q\n",
			err:   "q.go: no such file",
		},
		"no diff":        {patch: "A comment.\n", err: "there is no diff"},
		"no hunks":       {patch: file, err: "p/p.go has no hunks"},
		"no change":      {patch: file + "@@ @@\n package p\n", err: "needs context and a change"},
		"no context":     {patch: file + "@@ @@\n+package p\n", err: "needs context and a change"},
		"a renamed file": {patch: "--- a/p/p.go\n+++ b/p/q.go\n@@ @@\n-package p\n", err: "cannot rename"},
		"an unmarked line": {
			patch: file + "@@ @@\n-package p\npackage q\n",
			err:   `line 7: "package q" begins with neither`,
		},
		"a line of no hunk": {patch: file + "-package p\n", err: "text between"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "p", "p.go")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(sampleSource), 0o600); err != nil {
				t.Fatal(err)
			}
			o, err := overlay.New(filepath.Join(root, "overlay"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePatch(tt.patch)
			if err == nil {
				err = p.addTo(root, o)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(root, "overlay", "0_p.go"))
			if err != nil || string(got) != tt.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
}
