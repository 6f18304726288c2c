package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPagesOfAllCommands: packages get a page of each command, which does not depend on the environment of the build.
func TestPagesOfAllCommands(t *testing.T) {
	t.Parallel()
	for _, format := range []struct{ name, page, rootPage string }{
		{"man", "quorate-lease-run.1", "quorate.1"},
		{"markdown", "quorate_lease_run.md", "quorate.md"},
	} {
		ours, others := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "others")
		if end := runCommand(t, "docs", "create", ours, "--format", format.name); end.code != 0 {
			t.Fatalf("%+v", end)
		}
		p := startWithEnv(t, []string{"QUORATE_SERVER=http://other:1", "QUORATE_CONTEXT=lab", "QUORATE_TOKEN_FILE=secret"},
			"docs", "create", others, "--format", format.name)
		if end := p.awaitEnd(t); end.code != 0 {
			t.Fatalf("%+v", end)
		}
		pages, err := os.ReadDir(ours)
		if err != nil || len(pages) < 80 {
			t.Fatalf("%s: %d pages, %v", format.name, len(pages), err)
		}
		for _, page := range pages {
			if read(t, ours, page.Name()) != read(t, others, page.Name()) {
				t.Errorf("%s depends on who writes it", page.Name())
			}
		}
		if text := read(t, ours, format.page); !strings.Contains(text, "holding a lease") ||
			!strings.Contains(text, "codes-from") {
			t.Errorf("%s does not describe the command:\n%s", format.page, text)
		}
		if text := read(t, ours, format.rootPage); !strings.Contains(text, "explain") ||
			strings.Contains(text, "quorate-docs") {
			t.Errorf("%s does not list the commands, or one too many:\n%s", format.rootPage, text)
		}
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
