package scenarios

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// starter starts the player of a language.
type starter func(t *testing.T, servers []string) *player

func startPython(t *testing.T, servers []string) *player {
	t.Helper()
	return startProcess(t, servers, []string{"python3", "-B", "../python/scenario_player.py"})
}

// TestPythonQuickly plays what takes less than a second with Python, which is on nearly every machine.
func TestPythonQuickly(t *testing.T) {
	requireTools(t, "python3")
	t.Parallel()
	playAll(t, startPython, func(s scenario) bool {
		return s.Name == "acquire and release" || s.Name == "denial with reasons"
	})
}

func TestPython(t *testing.T) { playEverything(t, startPython, "python3") }

func playEverything(t *testing.T, start starter, programs ...string) {
	t.Helper()
	verify.Only(t) // a minute
	requireTools(t, programs...)
	playAll(t, start, func(scenario) bool { return true })
}

// playAll plays the chosen scenarios, one after the other, against one cluster.
func playAll(t *testing.T, start starter, isChosen func(scenario) bool) {
	t.Helper()
	c, played := startCluster(t), 0
	for _, s := range readScript(t, strings.ToLower(t.Name())).Scenarios {
		if !isChosen(s) {
			continue
		}
		played++
		if !t.Run(s.Name, func(t *testing.T) { playScenario(t, c, start, s) }) {
			t.Fatal("the cluster is not as the next scenario expects it")
		}
	}
	if played == 0 {
		t.Fatal("no scenario was played")
	}
}

func playScenario(t *testing.T, c *cluster, start starter, s scenario) {
	t.Helper()
	addresses := c.URLs
	if s.Knows > 0 {
		addresses = addresses[:s.Knows]
	}
	var front *gateway
	if s.Gateway {
		front = startGateway(t, addresses[0])
		addresses = []string{front.url}
	}
	p := start(t, addresses)
	changed := time.Now() // when the driver began its last step
	for _, st := range s.Steps {
		if st.Servers != nil {
			changed = time.Now()
			switch {
			case s.Gateway:
				front.do(t, st.Servers)
			case st.Servers.Terminate != "":
				p.terminate()
			default:
				c.do(t, st.Servers)
			}
			continue
		}
		answer := p.play(st.Play)
		took := time.Since(changed)
		said, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		switch early, _ := answer["earlyMs"].(float64); {
		case answer["outcome"] == "unsupported":
			t.Skipf("this client cannot: %v", answer["text"])
		case !contains(answer, st.Expect):
			t.Fatalf("%v is answered %s, want %v", st.Play, said, st.Expect)
		case st.Before > 0 && took > time.Duration(st.Before)*time.Second:
			t.Errorf("%v is answered after %v, want at most %d s", st.Play, took, st.Before)
		case st.Early && early <= 0:
			t.Errorf("%v is answered %s: the holder was told when the lease may have ended", st.Play, said)
		}
	}
}

func (c *cluster) do(t *testing.T, s *driverStep) {
	t.Helper()
	switch {
	case len(s.Run) > 0:
		c.Run(t, s.Run...)
	case s.Kill == "leader":
		leader, _ := c.Leader(t)
		c.kill(leader)
	case s.Kill == "first":
		c.kill(c.Servers[0])
	case s.Start == "killed":
		c.startKilled(t)
	case s.Stop == "all":
		c.signal(t, syscall.SIGSTOP)
	case s.Continue == "all":
		c.signal(t, syscall.SIGCONT)
	case s.Await == "waiting", s.Await == "not-waiting":
		servertest.Await(t, patience, s.ID+" is "+s.Await, func() bool {
			return strings.Contains(c.Run(t, "queue", "list"), s.ID) == (s.Await == "waiting")
		})
	case s.Await == "expired":
		servertest.Await(t, patience, s.ID+" has expired", func() bool {
			return !strings.Contains(c.Run(t, "lease", "list"), s.ID)
		})
	default:
		t.Fatalf("the driver does not know %+v", s)
	}
}
