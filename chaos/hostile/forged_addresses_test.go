package hostile

import (
	"context"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster/gossip/forge"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/internal/verify"
)

// impostor is a server that claims to be another node and answers every call with a forged grant.
type impostor struct {
	address     string
	pretends    atomic.Pointer[node]
	misdirected atomic.Int64 // calls of clients that came here
}

func startImpostor(t *testing.T) *impostor {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	th := &impostor{address: listener.Addr().String()}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: th, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return th
}

// ServeHTTP answers as a node that leads.
func (th *impostor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer proto.Message
	switch as := th.pretends.Load(); {
	case as == nil:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case strings.HasSuffix(r.URL.Path, "/GetStanding"):
		answer = &peerv1.GetStandingResponse{
			Id: as.ID, State: "Leader", Version: "v9", FeatureLevel: 4,
			LastIndex: 1 << 40, Term: 1 << 40,
		}
	case strings.HasSuffix(r.URL.Path, "/ReadIndex"):
		answer = &peerv1.ReadIndexResponse{Index: 1}
	default:
		th.misdirected.Add(1)
		answer = &quoratev1.AllocateResponse{Decision: &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_GRANTED}}
	}
	content, err := proto.Marshal(answer)
	if err != nil {
		panic(err) // it never fails
	}
	w.Header().Set("Content-Type", "application/proto")
	_, _ = w.Write(content) // an attacker does not care
}

// TestForgedAddresses: gossip announces again and again that the API of the leader, and then its raft port too, has
// the address of an impostor. Before the fix, a follower relayed every call there and returned forged grants. The
// follower is restarted in between, as it knows no members at first.
func TestForgedAddresses(t *testing.T) {
	verify.Only(t) // TestMalformedGossip is the quick one of its kind
	onEachTransport(t, func(t *testing.T, c *cluster, g gossiper) {
		t.Helper()
		leader, follower := c.findLeader(t)
		th := startImpostor(t)
		th.pretends.Store(leader)
		ctx, stop := context.WithCancel(t.Context())
		forging := make(chan struct{})
		go func() {
			defer close(forging)
			for i := uint32(0); ctx.Err() == nil && i < 4000; i++ {
				forged := g.memberOf(leader)
				forged.Incarnation = math.MaxUint32 - 10_000 + 2*i // newer than what the leader says against it
				forged.Meta.HTTPAddr = th.address
				if i > 150 {
					forged.Meta.RaftAddr = th.address
				}
				for _, n := range c.nodes {
					if n == leader {
						continue
					}
					packet := forge.Alive(forged)
					if g.key != nil {
						packet = forge.Encrypted(g.key, packet)
					}
					to, err := net.Dial("udp", n.Gossip)
					if err != nil {
						continue
					}
					_, _ = to.Write(packet) // the port may be closed
					_ = to.Close()
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		defer func() { stop(); <-forging }()
		time.Sleep(2 * time.Second)
		c.checkServing(t, "while addresses are forged")
		follower.Kill()
		follower.Start(t)
		c.awaitReady(t)
		c.checkServing(t, "after a restart while addresses are forged")
		if robbed := th.misdirected.Load(); robbed > 0 {
			t.Errorf("%d calls were relayed to an impostor", robbed)
		}
		status := runCommand(t, append([]string{"member", "list"}, c.clientFlags(follower)...)...)
		if status.code != 0 || strings.Contains(status.stdout, th.address) {
			t.Errorf("the address of an impostor is listed as a member's: %+v", status)
		}
	})
}
