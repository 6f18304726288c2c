package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// runWithContexts runs a command line without --server, with the contexts of a folder of the test.
func runWithContexts(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, talk strings.Builder
	if code := execute(args, strings.NewReader(""), &out, &talk); code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out.String(), talk.String())
	}
	return out.String(), talk.String()
}

func useContexts(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "deeper", "contexts.json")
	for name, value := range map[string]string{
		"QUORATE_CONFIG": file, "QUORATE_CONTEXT": "", "QUORATE_SERVER": "", "QUORATE_TOKEN": "", "QUORATE_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	return file
}

// TestContexts: a context names servers and a credential, the current one applies without a flag, and the file is
// private.
func TestContexts(t *testing.T) {
	_, server := startFake(t)
	file := useContexts(t)
	runWithContexts(t, cli.ExitOK, "context", "set", "lab", "--server", server)
	runWithContexts(t, cli.ExitOK, "context", "set", "gone", "--server", "127.0.0.1:1")
	if out, _ := runWithContexts(t, cli.ExitOK, "tree", "list", "-o", "name"); !strings.HasPrefix(out, "cern\n") {
		t.Errorf("the current context is not used: %s", out)
	}
	runWithContexts(t, cli.ExitUnavailable, "tree", "list", "--context", "gone", "--timeout", "100ms")
	runWithContexts(t, cli.ExitOK, "context", "use", "gone")
	runWithContexts(t, cli.ExitUnavailable, "tree", "list", "--timeout", "100ms")
	t.Setenv("QUORATE_SERVER", server)
	runWithContexts(t, cli.ExitOK, "tree", "list")
	runWithContexts(t, cli.ExitUnavailable, "tree", "list", "--context", "gone", "--timeout", "100ms")
	runWithContexts(t, cli.ExitOK, "context", "delete", "gone")
	if out, _ := runWithContexts(t, cli.ExitOK, "context", "list", "-o", "name"); out != "lab\n" {
		t.Errorf("contexts: %q", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the contexts: %v, %v", info.Mode(), err)
	}
}

// TestCurrentContextKeepsItsTokenFromOtherServers: only --context sends the token of a context to servers that are not
// those of the context.
func TestCurrentContextKeepsItsTokenFromOtherServers(t *testing.T) {
	_, server := startFake(t)
	useContexts(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("two words\n"), 0o600); err != nil { // reading it is an error
		t.Fatal(err)
	}
	runWithContexts(t, cli.ExitOK, "context", "set", "lab", "--server", server, "--token-file", token)
	_, talk := runWithContexts(t, cli.ExitUsage, "tree", "list")
	if !strings.Contains(talk, token) {
		t.Errorf("the token of the current context is not read: %s", talk)
	}
	runWithContexts(t, cli.ExitOK, "tree", "list", "--server", server)
	runWithContexts(t, cli.ExitUsage, "tree", "list", "--server", server, "--context", "lab")
}

func TestContextMistakes(t *testing.T) {
	file := useContexts(t)
	for command, says := range map[string]string{
		"context use lab":                             "quorate context set lab --server ADDRESS makes one",
		"context set lab":                             "--server URL",
		"context set a/b --server x":                  "is not a name of a context",
		"context set lab --server x --token-file /no": "--token-file: stat /no",
		"tree list --context lab":                     `there is no context "lab"`,
	} {
		if _, talk := runWithContexts(t, cli.ExitUsage, strings.Fields(command)...); !strings.Contains(talk, says) {
			t.Errorf("%s: %s", command, talk)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"contexts":[{"nome":"lab"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, talk := runWithContexts(t, cli.ExitUsage, "tree", "list"); !strings.Contains(talk, file) {
		t.Errorf("a damaged file: %s", talk)
	}
}
