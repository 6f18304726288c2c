package runner

import (
	"os"
	"path/filepath"
	"testing"
)

// cloneOrSkip returns a build from this clone. It skips the test if there is no git history.
func cloneOrSkip(t *testing.T) Build {
	t.Helper()
	b := Build{Source: filepath.Join("..", "..")}
	if _, err := b.runGit(t.Context(), nil, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		t.Skipf("this is not a clone, or git is missing: %v", err)
	}
	return b
}

func TestOlderIsAFileOrARevision(t *testing.T) {
	b := cloneOrSkip(t)
	file := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := b.Older(t.Context(), t.TempDir(), file); err != nil || path != file {
		t.Errorf("a file gives %q, %v", path, err)
	}
	if path, err := b.Older(t.Context(), t.TempDir(), "no-such-revision"); err == nil {
		t.Errorf("an unknown revision gives %q", path)
	}
}

// TestOlderIsBuiltOnce: building takes minutes.
func TestOlderIsBuiltOnce(t *testing.T) {
	b, dir := cloneOrSkip(t), t.TempDir()
	want := createBinary(t, b, dir, "HEAD")
	if path, err := b.Older(t.Context(), dir, "HEAD"); err != nil || path != want {
		t.Errorf("it is %q, %v, want %s", path, err, want)
	}
}

func TestPreviousIsTheNewestRelease(t *testing.T) {
	b, dir := cloneOrSkip(t), t.TempDir()
	list, err := b.readReleases()
	if err != nil || len(list) == 0 {
		t.Fatalf("there are no released versions: %v", err)
	}
	newest := list[len(list)-1]
	if _, err := b.runGit(t.Context(), nil, "cat-file", "-e", newest[1]); err != nil {
		t.Skipf("this clone has no history back to %s", newest[0])
	}
	want := createBinary(t, b, dir, newest[0])
	if path, err := b.Previous(t.Context(), dir); err != nil || path != want {
		t.Errorf("it is %q, %v, want %s", path, err, want)
	}
}

func createBinary(t *testing.T, b Build, dir, name string) string {
	t.Helper()
	commit, err := b.resolveCommit(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Build{Version: commit[:12]}.binaryName())
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpack(t *testing.T) {
	b, dir := cloneOrSkip(t), t.TempDir()
	staged := []string{"diff", "--cached", "--stat"}
	before, err := b.runGit(t.Context(), nil, staged...)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.checkOutTree(t.Context(), "HEAD", dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "cmd/quorate/main.go"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if after, err := b.runGit(t.Context(), nil, staged...); err != nil || after != before {
		t.Errorf("the index was %q and is %q, %v", before, after, err)
	}
}
