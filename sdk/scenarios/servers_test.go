package scenarios

import (
	"os"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// patience is the timeout of a single step on a busy machine.
const patience = time.Minute

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

type cluster struct {
	*servertest.Cluster

	killed []*servertest.Server
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: servertest.StartCluster(t, servertest.Settings{Patience: patience})}
	c.Run(t, "apply", "-f", "lab.yaml")
	return c
}

// kill ends a server as a power cut would.
func (c *cluster) kill(s *servertest.Server) {
	s.Kill()
	c.killed = append(c.killed, s)
}

func (c *cluster) startKilled(t *testing.T) {
	t.Helper()
	for _, s := range c.killed {
		s.Restart(t)
	}
	c.killed = nil
}

func (c *cluster) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	for _, s := range c.Servers {
		s.Signal(t, signal)
	}
}
