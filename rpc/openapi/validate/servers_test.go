package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// patience is the timeout of a single step on a busy machine.
const patience = time.Minute

// bootstrapSecret makes the first administrator.
const bootstrapSecret = "0123456789abcdef0123456789abcdef0123456789abcdef"

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// startServers starts an open cluster of three, and returns the URL of one of them.
func startServers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	secrets, bootstrap := filepath.Join(dir, "secrets"), filepath.Join(dir, "bootstrap.secret")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(secrets, "hook"), bootstrap} {
		if err := os.WriteFile(file, []byte(bootstrapSecret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := servertest.StartCluster(t, servertest.Settings{Patience: patience, Args: []string{
		"--bootstrap-secret-file", bootstrap, "--webhook-secrets-dir", secrets, "--webhook-hosts", "hooks.invalid",
	}})
	servertest.Await(t, patience, "the cluster has agreed on civil time, which limits are scheduled by", func() bool {
		answer, err := c.Try(t, "schedule", "list", "-o", "json")
		return err == nil && strings.Contains(answer, "civilAt")
	})
	return c.URLs[0]
}
