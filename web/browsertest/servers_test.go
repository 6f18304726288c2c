package browsertest

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// patience is the timeout of a single step on a busy machine.
const patience = time.Minute

// server is a real server. Commands present its token, if it has one.
type server = servertest.Server

func startServers(t *testing.T, size int, settings ...string) []*server {
	t.Helper()
	return startCluster(t, size, settings...).Servers
}

func startCluster(t *testing.T, size int, settings ...string) *servertest.Cluster {
	t.Helper()
	return servertest.StartCluster(t, servertest.Settings{Size: size, Args: settings, Patience: patience})
}

// startGuarded starts a server for experiments that is guarded; its token is the one of an administrator.
func startGuarded(t *testing.T) *server {
	t.Helper()
	address := servertest.FreePorts(t, 1)[0]
	s := &server{ID: "dev", Args: []string{"server", "dev", "--guarded", "--http-addr", address}}
	s.URLs, s.Patience = []string{"http://" + address}, patience
	s.ReadyURL = s.URL() + "/readyz"
	s.Start(t)
	t.Cleanup(func() {
		if s.Running() {
			s.Signal(t, os.Interrupt) // it removes its data
			<-s.Ended()
		}
	})
	s.AwaitReady(t)
	token := regexp.MustCompile(`(qrt_\S+)\s`)
	await(t, "the server prints a token", func() bool {
		found := token.FindStringSubmatch(s.Stdout.String())
		if found != nil {
			s.Token = found[1]
		}
		return found != nil
	})
	return s
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	servertest.Await(t, patience, what, done)
}
