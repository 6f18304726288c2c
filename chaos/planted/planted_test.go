package planted

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/overlay"
)

const moduleRoot = "../.."

// TestPatchesFitTheSources: each patch applies to the sources as they are now, and what it changes still compiles.
func TestPatchesFitTheSources(t *testing.T) {
	for _, bug := range Bugs() {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			o, err := overlay.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := Apply(bug.Name, moduleRoot, o); err != nil {
				t.Fatal(err)
			}
			file, err := o.Write()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"build", "-overlay", file}, changedPackages(t, bug.Name)...)
			build := exec.CommandContext(t.Context(), "go", args...)
			build.Dir = moduleRoot
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// changedPackages are the packages that a patch changes, relative to the root of the module.
func changedPackages(t *testing.T, bug string) []string {
	t.Helper()
	text, err := patchFiles.ReadFile(bug + ".patch")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePatch(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, f := range p {
		packages = append(packages, "./"+path.Dir(f.path))
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// TestEveryPatchIsABug, so that none is forgotten by the self test; each says which promise it breaks.
func TestEveryPatchIsABug(t *testing.T) {
	var names, want []string
	for _, bug := range Bugs() {
		names = append(names, bug.Name)
	}
	files, err := filepath.Glob("*.patch")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		want = append(want, strings.TrimSuffix(file, ".patch"))
		text, err := patchFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if comment, _, _ := strings.Cut(string(text), "--- a/"); !strings.Contains(comment, "\nBreaks P") {
			t.Errorf("%s does not say which promise it breaks", file)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("bugs %q, but patches %q", names, want)
	}
	o, err := overlay.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply("nope", moduleRoot, o); err == nil || !strings.Contains(err.Error(), `no planted bug "nope"`) {
		t.Errorf("an unknown bug: %v", err)
	}
}
