package clustertest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

func startProcess(t *testing.T, name, binary string, args ...string) *servertest.Process {
	t.Helper()
	return servertest.StartProcess(t, name, exec.Command(binary, args...))
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	servertest.Await(t, patience, what, done)
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func isReady(address string) bool {
	answer, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
