package gossip_test

import (
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster/gossip/forge"
)

func (p *testNetwork) sendPacket(n int, packet []byte) {
	p.t.Helper()
	if _, err := p.wire.newEnd(200).WriteTo(packet, gossipAddress(n)); err != nil {
		p.t.Fatal(err)
	}
}

func forgedNode(name string, at byte) forge.Node {
	return forge.Node{
		Name: name, Addr: &net.UDPAddr{IP: net.IPv4(10, 0, 1, at), Port: 7000}, Incarnation: math.MaxUint32,
		Meta: forge.Meta{
			Cluster: "blue", RaftAddr: "nowhere:1", HTTPAddr: "nowhere:2", Version: "v", Level: math.MaxUint32,
			HasState: true,
		},
	}
}

// TestMadeUpNodesAreBounded: however many names are forged, few are remembered, members are always known, and one
// minute after the end the forged names are gone.
func TestMadeUpNodesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		p.setKeys(1, testKey('a'))
		p.setKeys(2, testKey('a'))
		p.setKeys(3, testKey('a'))
		p.startNode(1, "blue")
		p.nodes[1].KeepMembers([]string{"n1", "n2", "n3"})
		for i := range 2000 {
			p.sendPacket(1, forge.Encrypted(testKey('a'), forge.Alive(forgedNode(fmt.Sprint("ghost", i), byte(i)))))
			time.Sleep(time.Millisecond)
		}
		if known := len(p.nodes[1].Peers()); known < 10 || known > 64 {
			t.Errorf("%d made-up nodes are known, want some, and at most 64", known)
		}
		p.startNode(2, "blue", 1)
		p.startNode(3, "blue", 1)
		time.Sleep(5 * time.Second)
		if alive := " " + p.peersSeen(1) + " "; !strings.Contains(alive, " n2 ") || !strings.Contains(alive, " n3 ") {
			t.Errorf("among %d made-up nodes n1 does not see both n2 and n3", strings.Count(alive, "ghost"))
		}
		time.Sleep(10 * time.Minute)
		p.expectPeers("some time after", 1, "n2 n3")
		if lines := strings.Count(p.log.String(), "\n"); lines > 2000 {
			t.Errorf("%d lines were logged", lines)
		}
	})
}

// TestNonsenseStopsNobody: datagrams and streams that made memberlist inflate without a bound, or end the process, have
// no effect.
func TestNonsenseStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		p.startNode(1, "blue")
		p.startNode(2, "blue", 1)
		time.Sleep(5 * time.Second)
		cut := forgedNode("ghost", 1)
		cut.Versions = []byte{1}
		bomb := forge.Bomb(8 << 20)
		for _, message := range [][]byte{
			bomb, forge.Compound(forge.Ping("n1"), bomb), forge.Checksummed(bomb), forge.Alive(cut),
			forge.PushPull([]forge.Node{cut}, 1, 0),
			forge.PushPull([]forge.Node{cut}, -1, -1),
			{9},
			{12, 0, 0, 0, 0},
			{7, 255},
			forge.EncryptedStream(testKey('a'), nil),
		} {
			p.sendPacket(1, message)
			if c, err := p.wire.newEnd(200).DialTimeout(gossipAddress(1), time.Second); err == nil {
				_ = c.SetDeadline(time.Now().Add(time.Second))
				_, _ = c.Write(message) // it is refused before its end
				_ = c.Close()
			}
			time.Sleep(time.Second)
			p.expectPeers("after nonsense", 1, "n2")
		}
		if logged := p.log.String(); !strings.Contains(logged, "refused a message that no member sends") ||
			strings.Count(logged, "refused") > 10 {
			t.Errorf("logged:\n%s", logged)
		}
	})
}
