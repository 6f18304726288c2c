package conformance

import (
	"os"
	"testing"
	"time"

	"sigs.k8s.io/boskos/client"

	"github.com/quorate/quorate/internal/servertest"
)

const (
	root = "../../.."
	// patience is the timeout of a single step on a busy machine.
	patience = time.Minute
)

func TestMain(m *testing.M) {
	client.SleepFunc = func(d time.Duration) { time.Sleep(d / 10) } // the library's own knob for tests
	os.Exit(servertest.Main(m))
}

type cluster struct {
	*servertest.Cluster

	fronts map[*servertest.Server]string
}

func start(t *testing.T, resources string) *cluster {
	t.Helper()
	fronts := map[*servertest.Server]string{}
	c := servertest.StartCluster(t, servertest.Settings{Patience: patience, Each: func(_ int, s *servertest.Server) {
		address := servertest.FreePorts(t, 1)[0]
		fronts[s] = "http://" + address
		s.Args = append(s.Args, "--front-ends", "boskos="+address)
	}})
	c.Run(t, "apply", "--from", "boskos", "-f", resources)
	return &cluster{c, fronts}
}

func (c *cluster) url(s *servertest.Server) string { return c.fronts[s] }

// killLeader uses SIGKILL, as a power cut would.
func (c *cluster) killLeader(t *testing.T) *servertest.Server {
	t.Helper()
	leader, _ := c.Leader(t)
	leader.Kill()
	return leader
}

// loseLeader kills the leader until the test ends.
func (c *cluster) loseLeader(t *testing.T) {
	t.Helper()
	lost := c.killLeader(t)
	t.Cleanup(func() { lost.Restart(t) })
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	servertest.Await(t, patience, what, done)
}

func newClient(t *testing.T, owner, url string) *client.Client {
	t.Helper()
	c, err := client.NewClient(owner, url, "", "")
	if err != nil {
		t.Fatal(err)
	}
	c.DistinguishNotFoundVsTypeNotFound = true
	c.Dialer.RetrySleep = 100 * time.Millisecond
	return c
}
