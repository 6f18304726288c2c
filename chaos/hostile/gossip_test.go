package hostile

import (
	"io"
	"math"
	"net"
	"testing"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster/gossip/forge"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/verify"
)

// gossiper is a hostile peer that reaches the gossip ports of all servers and has their key, if they have one.
type gossiper struct {
	c   *cluster
	key []byte // nil in plain text
}

func (c *cluster) newGossiper(t *testing.T) gossiper {
	t.Helper()
	g := gossiper{c: c}
	if c.certs != "" {
		keys, err := pki.LoadGossipKeys(c.certs.GossipKeys())
		if err != nil {
			t.Fatal(err)
		}
		g.key = keys[0]
	}
	return g
}

func (g gossiper) sendDatagram(t *testing.T, to *node, message []byte) {
	t.Helper()
	if g.key != nil {
		message = forge.Encrypted(g.key, message)
	}
	g.sendRaw(t, to, message)
}

func (g gossiper) sendRaw(t *testing.T, to *node, packet []byte) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "udp", to.Gossip)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()        //nolint:errcheck // it is only written to
	_, _ = c.Write(packet) // the port may be closed
}

// sendStream waits until the server closes the stream.
func (g gossiper) sendStream(t *testing.T, to *node, message []byte) {
	t.Helper()
	if g.key != nil {
		message = forge.EncryptedStream(g.key, message)
	}
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", to.Gossip)
	if err != nil {
		return // the server refuses connections
	}
	defer c.Close() //nolint:errcheck // it is an attack
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = c.Write(message) // the server may refuse before the end
	_, _ = io.Copy(io.Discard, c)
}

// memberOf returns what a server gossips about itself, with an incarnation that no server reaches by itself.
func (g gossiper) memberOf(n *node) forge.Node {
	return forge.Node{
		Name: n.ID, Addr: udpAddress(n.Gossip), Incarnation: math.MaxUint32 - 100,
		Meta: forge.Meta{
			Cluster: "quorate", RaftAddr: n.Raft, HTTPAddr: n.HTTP, Version: "v9", Level: 4, Expect: 3,
			HasState: true,
		},
	}
}

func udpAddress(address string) *net.UDPAddr {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		panic(err) // all addresses are numbers
	}
	return to
}

// awaitCheckpoint returns the index at which all members have computed their digests.
func (c *cluster) awaitCheckpoint(t *testing.T, n *node) uint64 {
	t.Helper()
	waitFor(t, "the members do not compare their states", func() bool {
		return runCommand(t, append([]string{"digest", "list", "--now"}, c.clientFlags(n)...)...).code == 0
	})
	calls := adminv1connect.NewClusterServiceClient(c.httpClient(t, ""), n.URL())
	answer, err := calls.ListMembers(t.Context(), &adminv1.ListMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var newest uint64
	for _, m := range answer.GetMembers() {
		newest = max(newest, m.GetCheckpointIndex())
	}
	if newest == 0 {
		t.Fatalf("there is no checkpoint: %v", answer)
	}
	return newest
}

// checkServing checks that all servers run, are ready, and carry out calls. It waits for that: on a busy machine a
// leader is lost for a moment without an attack, and what an attack stops does not come back by itself.
func (c *cluster) checkServing(t *testing.T, when string) {
	t.Helper()
	for _, n := range c.nodes {
		if !n.Running() {
			t.Fatalf("%s %s has ended", when, n.ID)
		}
		waitFor(t, when+" "+n.ID+" is not ready", func() bool { return c.isReady(t, n) })
		waitFor(t, when+" "+n.ID+" carries out nothing",
			func() bool { return c.pairsPerSecond(t, n, 2, 300*time.Millisecond) > 0 })
	}
}

// onEachTransport runs an attack on encrypted gossip, and in make verify on plain gossip too.
func onEachTransport(t *testing.T, attack func(t *testing.T, c *cluster, g gossiper)) {
	t.Helper()
	for name, o := range map[string]clusterOptions{"plain": {}, "with the key": {encrypted: true}} {
		t.Run(name, func(t *testing.T) {
			if !o.encrypted {
				verify.Only(t)
			}
			c := startCluster(t, o)
			c.applyTree(t, 1000)
			attack(t, c, c.newGossiper(t))
		})
	}
}

// TestForgedDigests: two datagrams to each server, in the names of the other two, announce other digests. Before the
// fix, all servers quarantined themselves, even after a restart.
func TestForgedDigests(t *testing.T) {
	verify.Only(t) // TestMalformedGossip is the quick one of its kind
	onEachTransport(t, func(t *testing.T, c *cluster, g gossiper) {
		t.Helper()
		index := c.awaitCheckpoint(t, c.nodes[0])
		for _, to := range c.nodes {
			for _, in := range c.nodes {
				if in != to {
					forged := g.memberOf(in)
					forged.Meta.Checkpoint, forged.Meta.Digest = index, "ffffffffffffffff"
					g.sendDatagram(t, to, forge.Alive(forged))
				}
			}
		}
		time.Sleep(3 * time.Second)
		c.checkServing(t, "after forged digests")
		for _, n := range c.nodes {
			n.Kill()
			n.Start(t)
		}
		c.awaitReady(t)
		c.checkServing(t, "after a restart")
	})
}

// TestForgedLevel: one datagram to each server announces a node of a cluster with an unknown feature level. Before
// the fix, all processes ended.
func TestForgedLevel(t *testing.T) {
	verify.Only(t) // TestMalformedGossip is the quick one of its kind
	onEachTransport(t, func(t *testing.T, c *cluster, g gossiper) {
		t.Helper()
		ghost := forge.Node{
			Name: "ghost", Addr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Incarnation: 1,
			Meta: forge.Meta{
				Cluster: "quorate", RaftAddr: "127.0.0.1:9", HTTPAddr: "127.0.0.1:9", Version: "v9",
				Level:        math.MaxUint32,
				ClusterLevel: math.MaxUint32, HasState: true,
			},
		}
		for _, n := range c.nodes {
			g.sendDatagram(t, n, forge.Alive(ghost))
		}
		time.Sleep(3 * time.Second)
		c.checkServing(t, "after a forged level")
	})
}

// TestInflatingGossip: short datagrams and streams inflate to tens of megabytes, alone, inside others, or compressed
// twice, with the key and without. Before the fix, each took hundreds of megabytes.
func TestInflatingGossip(t *testing.T) {
	verify.Only(t) // TestMalformedGossip is the quick one of its kind
	onEachTransport(t, func(t *testing.T, c *cluster, g gossiper) {
		t.Helper()
		c.checkServing(t, "before")
		bomb := forge.Bomb(48 << 20)
		if len(bomb) > 60<<10 {
			t.Fatalf("the bomb has %d bytes, which do not fit into a datagram", len(bomb))
		}
		before := map[string]int64{}
		for _, n := range c.nodes {
			before[n.ID] = n.memoryOf(t, "VmRSS")
		}
		for _, message := range [][]byte{
			bomb, forge.Compound(forge.Ping("n1"), bomb), forge.Compound(forge.Compound(bomb)), forge.Compressed(bomb),
			forge.Checksummed(bomb),
		} {
			for _, n := range c.nodes {
				g.sendDatagram(t, n, message)
				g.sendRaw(t, n, message)
				g.sendStream(t, n, message)
			}
		}
		time.Sleep(2 * time.Second)
		for _, n := range c.nodes {
			if most := n.memoryOf(t, "VmHWM"); most-before[n.ID] > 64<<20 {
				t.Errorf("%s took %d MiB more for it", n.ID, (most-before[n.ID])>>20)
			}
		}
		c.checkServing(t, "after inflating gossip")
	})
}

// TestMalformedGossip: memberlist does not check all lengths. Before the fix, a truncated list of versions ended every
// process that received it, without a key where gossip is plain.
func TestMalformedGossip(t *testing.T) {
	onEachTransport(t, func(t *testing.T, c *cluster, g gossiper) {
		t.Helper()
		for _, n := range c.nodes {
			for _, versions := range [][]byte{{}, {1}, {1, 5, 2}} {
				cut := g.memberOf(n)
				cut.Name, cut.Versions = "ghost", versions
				g.sendDatagram(t, n, forge.Alive(cut))
				g.sendStream(t, n, forge.PushPull([]forge.Node{cut}, 1, 0))
			}
			g.sendStream(t, n, nil)
			g.sendStream(t, n, forge.PushPull(nil, -1, 0))
			g.sendDatagram(t, n, nil)
		}
		time.Sleep(time.Second)
		c.checkServing(t, "after gossip that is cut short")
	})
}
