package planted

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/overlay"
	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/internal/verify"
)

const moduleRoot = "../.."

// TestPatchesFitTheSources: each patch applies to the present sources, and in make verify the result compiles.
// Patches of different files are compiled together, because each build of a large package takes seconds.
func TestPatchesFitTheSources(t *testing.T) {
	var builds []*patchedBuild
	for _, bug := range Bugs() {
		paths := patchedPaths(t, bug.Name)
		i := slices.IndexFunc(builds, func(b *patchedBuild) bool {
			return !slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(b.paths, path) })
		})
		if i < 0 {
			o, err := overlay.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			i, builds = len(builds), append(builds, &patchedBuild{overlay: o})
		}
		if err := Apply(bug.Name, moduleRoot, builds[i].overlay); err != nil {
			t.Error(err)
			continue
		}
		builds[i].bugs, builds[i].paths = append(builds[i].bugs, bug.Name), append(builds[i].paths, paths...)
	}
	if !verify.Enabled() {
		return // it takes longer to compile them than to apply them all
	}
	for _, b := range builds {
		b.compile(t)
	}
}

type patchedBuild struct {
	bugs, paths []string
	overlay     *overlay.Overlay
}

func (b *patchedBuild) compile(t *testing.T) {
	t.Helper()
	file, err := b.overlay.Write()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"build", "-overlay", file}, testbinary.Flags()...)
	for _, name := range b.paths {
		args = append(args, "./"+path.Dir(name))
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir = moduleRoot
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("one of %q: %v\n%s", b.bugs, err, out)
	}
}

// patchedPaths returns the files that a patch changes, relative to the root of the module.
func patchedPaths(t *testing.T, bug string) []string {
	t.Helper()
	text, err := patchFiles.ReadFile(bug + ".patch")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePatch(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range p {
		paths = append(paths, f.path)
	}
	return paths
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
