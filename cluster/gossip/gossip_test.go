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

type testNetwork struct {
	t     *testing.T
	wire  *memoryWire
	log   logRecorder
	nodes map[int]*gossip.Gossip
	keys  map[int]*gossip.Keyring // of those that encrypt
}

func newTestNetwork(t *testing.T) *testNetwork {
	t.Helper()
	p := &testNetwork{t: t, wire: newMemoryWire(), nodes: map[int]*gossip.Gossip{}, keys: map[int]*gossip.Keyring{}}
	t.Cleanup(func() {
		for n := range p.nodes {
			p.crashNode(n)
		}
		time.Sleep(time.Minute) // memberlist's goroutines look at their end only now and then
	})
	return p
}

func nodeName(n int) string { return "n" + string(rune('0'+n)) }

func selfPeer(n int) cluster.Peer {
	return cluster.Peer{
		ID: nodeName(n), RaftAddr: nodeName(n) + ":1", HTTPAddr: nodeName(n) + ":2", Version: "v1", FeatureLevel: 1,
		Expect: 3,
	}
}

func (p *testNetwork) startNode(n int, clusterName string, join ...int) *gossip.Gossip {
	p.t.Helper()
	c := gossip.Config{
		ID: nodeName(n), Cluster: clusterName, Bind: gossipAddress(n), Transport: p.wire.newEnd(n), Keys: p.keys[n],
		Logger: hclog.New(&hclog.LoggerOptions{Output: &p.log, Level: hclog.Warn}),
	}
	for _, j := range join {
		c.Join = append(c.Join, gossipAddress(j))
	}
	g := gossip.New(c)
	if err := g.Start(selfPeer(n)); err != nil {
		p.t.Fatal(err)
	}
	p.nodes[n] = g
	return g
}

func (p *testNetwork) crashNode(n int) {
	p.t.Helper()
	if err := p.nodes[n].Close(); err != nil {
		p.t.Error(err)
	}
	delete(p.nodes, n)
}

func (p *testNetwork) peersSeen(n int) string {
	var alive []string
	for _, peer := range p.nodes[n].Peers() {
		if peer.Alive {
			alive = append(alive, peer.ID)
		}
	}
	return strings.Join(alive, " ")
}

func (p *testNetwork) expectPeers(when string, n int, want string) {
	p.t.Helper()
	if got := p.peersSeen(n); got != want {
		p.t.Errorf("%s: %s sees %q, want %q", when, nodeName(n), got, want)
	}
}

type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logRecorder) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *logRecorder) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestPeersFindEachOtherAndHearOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 3; n++ {
			p.startNode(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		p.expectPeers("after the start", 1, "n2 n3")
		p.expectPeers("after the start", 3, "n1 n2")
		want := selfPeer(2)
		want.Alive = true
		if got := p.nodes[1].Peers()[0]; got != want {
			t.Errorf("n1 knows n2 as %+v, want %+v", got, want)
		}
		news := selfPeer(2)
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
			t.Errorf("there is a warning without a reason:\n%s", p.log.String())
		}
	})
}

func TestAJoinerWaitsForWhoeverComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		p.startNode(1, "blue", 2)
		time.Sleep(5 * time.Minute)
		p.startNode(2, "blue")
		time.Sleep(5 * time.Second)
		p.expectPeers("five seconds after n2 came", 1, "n2")
	})
}

func TestWhoeverIsDialledIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		p.startNode(1, "blue")
		p.startNode(2, "blue")
		p.startNode(3, "green")
		time.Sleep(time.Minute)
		p.expectPeers("before any node was told", 1, "")
		for _, want := range []bool{true, false} {
			if news, err := p.nodes[1].Join(t.Context(), gossipAddress(2)); err != nil || news != want {
				t.Errorf("dialling n2: %v, %v; want %v", news, err, want)
			}
			time.Sleep(5 * time.Second)
			p.expectPeers("after dialling", 1, "n2")
		}
		if news, err := p.nodes[1].Join(t.Context(), gossipAddress(1)); err != nil || news {
			t.Errorf("dialling itself: %v, %v", news, err)
		}
		if _, err := p.nodes[1].Join(t.Context(), gossipAddress(3)); err == nil {
			t.Error("a node of another cluster was joined")
		}
		p.crashNode(2)
		time.Sleep(time.Minute)
		p.startNode(2, "blue")
		time.Sleep(time.Minute)
		p.expectPeers("after its return", 1, "n2")
	})
}

func TestADeadPeerIsNoticedAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 3; n++ {
			p.startNode(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		p.crashNode(3)
		time.Sleep(20 * time.Second)
		p.expectPeers("after a crash", 1, "n2")
		p.startNode(3, "blue", 1)
		time.Sleep(20 * time.Second)
		p.expectPeers("after the return", 1, "n2 n3")
		p.expectPeers("after the return", 3, "n1 n2")
	})
}

func TestLeavingIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 3; n++ {
			p.startNode(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := p.nodes[2].Leave(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.expectPeers("a second after n2 left", 1, "n3")
		p.expectPeers("a second after n2 left", 3, "n1")
	})
}

func TestTwoIslandsFindEachOtherAfterALongPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 4; n++ {
			p.startNode(n, "blue", 1)
		}
		time.Sleep(5 * time.Second)
		west := func(address string) bool { return address <= gossipAddress(2) }
		p.wire.setCut(func(from, to string) bool { return west(from) != west(to) })
		time.Sleep(time.Hour)
		p.expectPeers("during the partition", 1, "n2")
		p.expectPeers("during the partition", 4, "n3")
		p.wire.setCut(nil)
		time.Sleep(time.Minute)
		p.expectPeers("after the partition", 1, "n2 n3 n4")
		p.expectPeers("after the partition", 4, "n1 n2 n3")
	})
}

func TestAnotherClusterIsRefusedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		p.startNode(1, "blue")
		p.startNode(2, "blue", 1)
		p.startNode(3, "green", 1)
		time.Sleep(time.Minute)
		p.expectPeers("after a visit from green", 1, "n2")
		p.expectPeers("after a visit to blue", 3, "")
		if !strings.Contains(p.log.String(), "check its join list and its cluster name") {
			t.Errorf("the log does not say why:\n%s", p.log.String())
		}
	})
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	g := gossip.New(gossip.Config{ID: "n1", Cluster: "blue"})
	peer := selfPeer(1)
	peer.HTTPAddr = strings.Repeat("x", 512)
	if err := g.Start(peer); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("512 bytes of address: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
