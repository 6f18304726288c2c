package gossip_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/gossip"
)

// party is some nodes that gossip over one wire.
type party struct {
	t     *testing.T
	wire  *wire
	log   journal
	nodes map[int]*gossip.Gossip
	keys  map[int]*gossip.Keyring // of those that encrypt
}

func newParty(t *testing.T) *party {
	t.Helper()
	p := &party{t: t, wire: newWire(), nodes: map[int]*gossip.Gossip{}, keys: map[int]*gossip.Keyring{}}
	t.Cleanup(func() {
		for n := range p.nodes {
			p.crash(n)
		}
		time.Sleep(time.Minute) // memberlist's goroutines look at their end only now and then
	})
	return p
}

func name(n int) string { return "n" + string(rune('0'+n)) }

func self(n int) cluster.Peer {
	return cluster.Peer{
		ID: name(n), RaftAddr: name(n) + ":1", HTTPAddr: name(n) + ":2", Version: "v1", FeatureLevel: 1, Expect: 3,
	}
}

func (p *party) come(n int, clusterName string, join ...int) *gossip.Gossip {
	p.t.Helper()
	c := gossip.Config{
		ID: name(n), Cluster: clusterName, Bind: gossipAddress(n), Transport: p.wire.plug(n), Keys: p.keys[n],
		Logger: hclog.New(&hclog.LoggerOptions{Output: &p.log, Level: hclog.Warn}),
	}
	for _, j := range join {
		c.Join = append(c.Join, gossipAddress(j))
	}
	g := gossip.New(c)
	if err := g.Start(self(n)); err != nil {
		p.t.Fatal(err)
	}
	p.nodes[n] = g
	return g
}

func (p *party) crash(n int) {
	p.t.Helper()
	if err := p.nodes[n].Close(); err != nil {
		p.t.Error(err)
	}
	delete(p.nodes, n)
}

// sees answers the ids of the peers that a node takes for alive.
func (p *party) sees(n int) string {
	var alive []string
	for _, peer := range p.nodes[n].Peers() {
		if peer.Alive {
			alive = append(alive, peer.ID)
		}
	}
	return strings.Join(alive, " ")
}

func (p *party) expect(when string, n int, want string) {
	p.t.Helper()
	if got := p.sees(n); got != want {
		p.t.Errorf("%s: %s sees %q, want %q", when, name(n), got, want)
	}
}

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestPeersFindEachOtherAndHearOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 3; n++ {
			p.come(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		p.expect("after the start", 1, "n2 n3")
		p.expect("after the start", 3, "n1 n2")
		want := self(2)
		want.Alive = true
		if got := p.nodes[1].Peers()[0]; got != want {
			t.Errorf("n1 knows n2 as %+v, want %+v", got, want)
		}
		news := self(2)
		news.HasState, news.Intent = true, "0123456789abcdef"
		if err := p.nodes[2].Update(news); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		news.Alive = true
		if got := p.nodes[3].Peers()[1]; got != news {
			t.Errorf("a second after the change n3 knows n2 as %+v, want %+v", got, news)
		}
		if p.log.String() != "" {
			t.Errorf("all is well and yet somebody warns:\n%s", p.log.String())
		}
	})
}

func TestAJoinerWaitsForWhoeverComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.come(1, "blue", 2)
		time.Sleep(5 * time.Minute)
		p.come(2, "blue")
		time.Sleep(5 * time.Second)
		p.expect("five seconds after n2 came", 1, "n2")
	})
}

func TestWhoeverIsDialledIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.come(1, "blue")
		p.come(2, "blue")
		p.come(3, "green")
		time.Sleep(time.Minute)
		p.expect("before anybody was told", 1, "")
		for _, want := range []bool{true, false} {
			if news, err := p.nodes[1].Join(t.Context(), gossipAddress(2)); err != nil || news != want {
				t.Errorf("dialling n2: %v, %v; want %v", news, err, want)
			}
			time.Sleep(5 * time.Second)
			p.expect("after dialling", 1, "n2")
		}
		if news, err := p.nodes[1].Join(t.Context(), gossipAddress(1)); err != nil || news {
			t.Errorf("dialling itself: %v, %v", news, err)
		}
		if _, err := p.nodes[1].Join(t.Context(), gossipAddress(3)); err == nil {
			t.Error("a node of another cluster was joined")
		}
		p.crash(2)
		time.Sleep(time.Minute)
		p.come(2, "blue")
		time.Sleep(time.Minute)
		p.expect("after its return", 1, "n2")
	})
}

func TestADeadPeerIsNoticedAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 3; n++ {
			p.come(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		p.crash(3)
		time.Sleep(20 * time.Second)
		p.expect("after a crash", 1, "n2")
		p.come(3, "blue", 1)
		time.Sleep(20 * time.Second)
		p.expect("after the return", 1, "n2 n3")
		p.expect("after the return", 3, "n1 n2")
	})
}

func TestLeavingIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 3; n++ {
			p.come(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := p.nodes[2].Leave(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.expect("a second after n2 left", 1, "n3")
		p.expect("a second after n2 left", 3, "n1")
	})
}

func TestTwoIslandsFindEachOtherAfterALongPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 4; n++ {
			p.come(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		west := func(address string) bool { return address <= gossipAddress(2) }
		p.wire.cut(func(from, to string) bool { return west(from) != west(to) })
		time.Sleep(time.Hour)
		p.expect("during the partition", 1, "n2")
		p.expect("during the partition", 4, "n3")
		p.wire.cut(nil)
		time.Sleep(time.Minute)
		p.expect("after the partition", 1, "n2 n3 n4")
		p.expect("after the partition", 4, "n1 n2 n3")
	})
}

func TestAnotherClusterIsRefusedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.come(1, "blue")
		p.come(2, "blue", 1)
		p.come(3, "green", 1)
		time.Sleep(time.Minute)
		p.expect("after a visit from green", 1, "n2")
		p.expect("after a visit to blue", 3, "")
		if !strings.Contains(p.log.String(), "check its join list and its cluster name") {
			t.Errorf("nobody says why:\n%s", p.log.String())
		}
	})
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	g := gossip.New(gossip.Config{ID: "n1", Cluster: "blue"})
	peer := self(1)
	peer.HTTPAddr = strings.Repeat("x", 512)
	if err := g.Start(peer); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("512 bytes of address: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
