package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// releasesFile lists the released versions with their commits, the newest last. The tests of cmd/quorate read it too.
const releasesFile = "cmd/quorate/testdata/released/commits.txt"

// Older returns the path of an older server: the file with that name, or a server built into dir from the commit of a
// released version or of a git revision. A server that was built before is not built again.
func (b Build) Older(ctx context.Context, dir, name string) (string, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return filepath.Abs(name)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	commit, err := b.resolveCommit(ctx, name)
	if err != nil {
		return "", err
	}
	older := Build{Source: filepath.Join(dir, commit), Version: commit[:12], Turnable: b.Turnable}
	binary := filepath.Join(dir, older.binaryName())
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	defer os.RemoveAll(older.Source) //nolint:errcheck // what stays is removed before the next build
	if err := errors.Join(os.RemoveAll(older.Source), b.checkOutTree(ctx, commit, older.Source)); err != nil {
		return "", fmt.Errorf("get the source of %s: %w", name, err)
	}
	return older.Make(ctx, dir)
}

// Previous is Older for the newest released version.
func (b Build) Previous(ctx context.Context, dir string) (string, error) {
	list, err := b.readReleases()
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", fmt.Errorf("%s does not list any version", releasesFile)
	}
	return b.Older(ctx, dir, list[len(list)-1][0])
}

// readReleases returns pairs of a version and its commit.
func (b Build) readReleases() (list [][]string, err error) {
	text, err := os.ReadFile(filepath.Join(b.Source, releasesFile))
	if err != nil {
		return nil, fmt.Errorf("read the released versions: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 2 {
			list = append(list, words)
		}
	}
	return list, nil
}

// resolveCommit takes a released version or a git revision.
func (b Build) resolveCommit(ctx context.Context, name string) (string, error) {
	list, err := b.readReleases()
	if err != nil {
		return "", err
	}
	revision := name
	for _, words := range list {
		if words[0] == name {
			revision = words[1]
		}
	}
	said, err := b.runGit(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("there is no older server %q: it is neither a file nor a revision in this clone", name)
	}
	return strings.TrimSpace(said), nil
}

// checkOutTree writes the files of a commit into a folder without changing the index of the clone.
func (b Build) checkOutTree(ctx context.Context, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, ".index")}
	if _, err := b.runGit(ctx, index, "read-tree", commit); err != nil {
		return err
	}
	_, err := b.runGit(ctx, index, "checkout-index", "--all", "--prefix="+dir+"/")
	return err
}

func (b Build) runGit(ctx context.Context, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Env = b.Source, append(os.Environ(), environment...)
	said, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(said), err
}
