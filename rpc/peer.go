package rpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
)

// peerService answers the other nodes of the cluster.
type peerService struct{ node Node }

// ReadIndex confirms that this node leads.
func (s peerService) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	index, err := s.node.ReadIndex(ctx)
	if err != nil {
		return nil, toError(err)
	}
	return &peerv1.ReadIndexResponse{Index: index}, nil
}

// GetStanding shows this node.
func (s peerService) GetStanding(context.Context, *peerv1.GetStandingRequest) (*peerv1.GetStandingResponse, error) {
	return standingToWire(s.node.Status()), nil
}

// Notify takes in what the leader says about this node.
func (s peerService) Notify(ctx context.Context, r *peerv1.NotifyRequest) (*peerv1.NotifyResponse, error) {
	notice := cluster.Notice{Leader: r.GetLeaderId(), From: nodeCallOf(ctx).id, Instance: r.GetInstance(), PromoteWhenStable: r.GetCandidate()}
	return answerOrError(&peerv1.NotifyResponse{}, s.node.Notify(notice))
}

// Status asks another node how it stands. With Notify it makes the server what [cluster.Node.SetPeerClient] wants.
func (s *Server) Status(ctx context.Context, m cluster.Member) (cluster.NodeStatus, error) {
	answer, err := s.peers.getStanding(ctx, m)
	if err != nil {
		return cluster.NodeStatus{}, fmt.Errorf("%s does not answer at %q: %w", m.ID, s.peers.addressOf(m), err)
	}
	return standingFromWire(answer), nil
}

// Notify tells another node about its place.
func (s *Server) Notify(ctx context.Context, m cluster.Member, notice cluster.Notice) error {
	_, err := s.peers.clientOf(m).Notify(ctx, &peerv1.NotifyRequest{
		LeaderId: notice.Leader, Instance: notice.Instance, Candidate: notice.PromoteWhenStable,
	})
	return err
}

// peers asks the other nodes.
type peers struct {
	self      string
	transport http.RoundTripper
	security  Security
	// network is true if nodes have listeners of their own.
	network bool
	// level is the feature level of the cluster.
	level func() uint32
}

func (p peers) clientOf(m cluster.Member) peerv1connect.PeerServiceClient {
	return p.clientAt(p.urlOf(m))
}

func (p peers) clientAt(url string) peerv1connect.PeerServiceClient {
	return peerv1connect.NewPeerServiceClient(&http.Client{Transport: p.transport}, url, connect.WithReadMaxBytes(MaxBody))
}

// readIndex asks the leader for the index that a linearizable read must wait for.
func (p peers) readIndex(ctx context.Context, leader cluster.Member) (uint64, error) {
	answer, err := p.clientOf(leader).ReadIndex(ctx, &peerv1.ReadIndexRequest{NodeId: p.self})
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, &cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s at %q, which should lead, did not confirm it: %v", leader.ID, p.addressOf(leader), err),
		}
	}
	return answer.GetIndex(), nil
}

func (p peers) getStanding(ctx context.Context, m cluster.Member) (*peerv1.GetStandingResponse, error) {
	url := p.urlOf(m)
	if url == "" {
		return nil, errNoAddress
	}
	answer, err := p.clientAt(url).GetStanding(ctx, &peerv1.GetStandingRequest{})
	// A node that went back to an earlier version is known by what it said before.
	if earlier := p.earlierURL(m); err != nil && earlier != "" && earlier != url && ctx.Err() == nil {
		return p.clientAt(earlier).GetStanding(ctx, &peerv1.GetStandingRequest{})
	}
	return answer, err
}

// newPeerTransport carries relayed calls and questions between nodes: HTTP/2 over few connections that are kept alive and
// given up soon when the other side falls silent.
func newPeerTransport(c Config) *http.Transport {
	protocols := new(http.Protocols)
	dial := (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext
	var encrypted *tls.Config
	switch {
	case c.Network != nil:
		dial = dialNodes(c.Network)
		protocols.SetUnencryptedHTTP2(true)
	case c.Security.Dial != nil:
		encrypted = c.Security.Dial("")
		protocols.SetHTTP2(true)
	default:
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: encrypted,
		DialContext:     dial,
		// A node that is busy takes its time to prove who it is; one that is gone does not even take the connection.
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 2 * time.Second, WriteByteTimeout: 5 * time.Second},
	}
}
