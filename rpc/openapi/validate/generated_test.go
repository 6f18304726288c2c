package validate

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGeneratedClients: public generators make clients of the document that a server serves, these compile, and a
// program with each of them is granted and reads why it is denied.
func TestGeneratedClients(t *testing.T) {
	url := startServers(t)
	s := &session{loadDocument(t, url), map[string]string{"bootstrap": bootstrapSecret}}
	s.make(t, call{procedure: "v1.TreeService/ApplyTrees", body: `{"reason": "the beginning", ` + cernTree + `}`})
	description := fetch(t, url+"/openapi.yaml")
	t.Run("go", func(t *testing.T) {
		at := copyProgram(t, "goclient", description)
		if err := os.Mkdir(filepath.Join(at, "api"), 0o700); err != nil {
			t.Fatal(err)
		}
		runAt(t, at, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.go",
			"openapi.yaml")
		assertAllocated(t, "go", runAt(t, at, "go", "run", ".", url))
	})
	t.Run("typescript", func(t *testing.T) {
		if _, err := exec.LookPath("npm"); err != nil {
			t.Skip("this machine has no npm: make browser installs Node")
		}
		at := copyProgram(t, "typescript", description)
		runAt(t, at, "npm", "ci", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error")
		runAt(t, at, "npx", "--no", "--", "openapi-typescript", "openapi.yaml", "-o", "api.d.ts")
		runAt(t, at, "npx", "--no", "--", "tsc")
		assertAllocated(t, "typescript", runAt(t, at, "node", "client.js", url))
	})
}

func assertAllocated(t *testing.T, name, said string) {
	t.Helper()
	want := "granted " + name + "-1 ALLOCATION_STATE_HELD\ndenied resource_exhausted limit 40\n"
	if said != want {
		t.Errorf("the program says %q, want %q", said, want)
	}
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing is written
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, response.StatusCode, err)
	}
	return text
}

// copyProgram copies the files of a program and adds the document.
func copyProgram(t *testing.T, folder string, description []byte) string {
	t.Helper()
	at := t.TempDir()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() { // what a person has generated or installed there
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(at, entry.Name()), text)
	}
	writeFile(t, filepath.Join(at, "openapi.yaml"), description)
	return at
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// runAt returns what a program writes to its standard output.
func runAt(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = folder, append(slices.Clone(os.Environ()), "GOWORK=off")
	var failed strings.Builder
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, failed.String())
	}
	return string(out)
}
