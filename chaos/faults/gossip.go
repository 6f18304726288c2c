package faults

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster/gossip/forge"
)

const (
	// forgePause is the pause between two messages to a node.
	forgePause = 30 * time.Millisecond
	// maxIncarnation bounds the incarnations of forged statements, so that a node can still refute them with a later
	// one.
	maxIncarnation = 1 << 20
	// bombBytes is the size that one of the messages inflates to.
	bombBytes = 16 << 20
)

func gossipKinds() []Kind {
	return []Kind{{
		Name:          "hostile-gossip",
		Description:   "a peer with the gossip key forges messages of all nodes, invents nodes and sends bombs",
		skipInUpgrade: true, minHold: 4 * time.Second, maxHold: 15 * time.Second, newFault: hostileGossip,
	}}
}

// hostileGossip sends to all nodes until it ends. It must have no effect that clients see.
func hostileGossip(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	dice := rand.New(rand.NewPCG(r.Uint64(), 0))
	var stop context.CancelFunc
	var sending sync.WaitGroup
	return func(ctx context.Context, t *Target) error {
			var sent context.Context
			sent, stop = context.WithCancel(context.WithoutCancel(ctx))
			t.Note(-1, "a hostile peer sends forged gossip")
			bomb := forge.Bomb(bombBytes)
			sending.Go(func() {
				for Sleep(sent, forgePause) {
					node := dice.IntN(len(t.Nodes))
					t.gossipTo(sent, node, t.forgeMessage(dice, bomb), dice.IntN(4))
				}
			})
			return nil
		}, func(_ context.Context, t *Target) error {
			stop()
			sending.Wait()
			t.Note(-1, "the hostile peer stops")
			return nil
		}
}

// gossipTo sends a datagram or uses a stream, with the key or without. Errors are ignored: the node may be down.
func (t *Target) gossipTo(ctx context.Context, node int, message []byte, way int) {
	protocol, stream, plain := "udp", way == 1, way == 2
	if stream {
		protocol = "tcp"
	}
	conn, err := t.DialGossip(ctx, node, protocol)
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // nothing is expected of it
	switch {
	case plain:
	case stream:
		message = forge.EncryptedStream(t.GossipKey, message)
	default:
		message = forge.Encrypted(t.GossipKey, message)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(message); err == nil && stream {
		_, _ = io.Copy(io.Discard, conn) // until the node ends it
	}
}

func (t *Target) forgeMessage(dice *rand.Rand, bomb []byte) []byte {
	about := dice.IntN(len(t.Nodes))
	incarnation := uint32(dice.IntN(maxIncarnation))
	switch dice.IntN(6) {
	case 0:
		return forge.Dead(t.Nodes[about].ID, t.Nodes[dice.IntN(len(t.Nodes))].ID, incarnation)
	case 1:
		return [][]byte{bomb, forge.Compound(forge.Ping("n1"), bomb), forge.Compressed(bomb)}[dice.IntN(3)]
	case 2:
		ghost := t.falseMember(dice, about, incarnation)
		ghost.Name, ghost.Addr = fmt.Sprint("ghost", dice.IntN(500)), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
		return forge.Alive(ghost)
	case 3:
		cut := t.falseMember(dice, about, incarnation)
		cut.Versions = forge.Versions[:dice.IntN(len(forge.Versions))]
		return forge.PushPull([]forge.Node{cut}, 1, 0)
	case 4:
		return forge.PushPull([]forge.Node{t.falseMember(dice, about, incarnation)}, 1, 0)
	}
	return forge.Alive(t.falseMember(dice, about, incarnation))
}

func (t *Target) falseMember(dice *rand.Rand, about int, incarnation uint32) forge.Node {
	other := (about + 1) % len(t.Nodes)
	at, err := net.ResolveUDPAddr("udp", t.GossipAddress(about))
	if err != nil {
		at = &net.UDPAddr{IP: net.IPv4zero} // cannot happen: all addresses are numeric
	}
	return forge.Node{
		Name: t.Nodes[about].ID, Addr: at, Incarnation: incarnation,
		Meta: forge.Meta{
			Cluster: "quorate", RaftAddr: t.RaftAddress(other), HTTPAddr: t.APIAddress(other), Version: "v9",
			Level: uint32(dice.IntN(3)), ClusterLevel: math.MaxUint32, HasState: dice.IntN(2) == 0, Expect: 5,
			Checkpoint: uint64(dice.IntN(10000)), Digest: "ffffffffffffffff",
		},
	}
}
