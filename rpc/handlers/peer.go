package handlers

import (
	"context"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// PeerService serves the other nodes of the cluster.
type PeerService struct {
	Node Node
	// Upkeep may be nil.
	Upkeep func() Upkeep
	// Calls serves the calls that nodes relay.
	Calls *RelayedCallServer
}

// ReadIndex confirms that this node leads.
func (s PeerService) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	index, err := s.Node.ReadIndex(ctx)
	if err != nil {
		return nil, wire.ToError(err)
	}
	return &peerv1.ReadIndexResponse{Index: index, LedgerTimeMs: int64(s.Node.LedgerTime())}, nil
}

// GetStanding shows this node.
func (s PeerService) GetStanding(context.Context, *peerv1.GetStandingRequest) (*peerv1.GetStandingResponse, error) {
	return s.standing(), nil
}

func (s PeerService) standing() *peerv1.GetStandingResponse {
	standing := wire.StandingToWire(s.Node.Status())
	if s.Upkeep != nil {
		s.Upkeep().addTo(standing)
	}
	return standing
}

// Notify processes the leader's notice about this node.
func (s PeerService) Notify(ctx context.Context, r *peerv1.NotifyRequest) (*peerv1.NotifyResponse, error) {
	return answerOrError(&peerv1.NotifyResponse{}, s.Node.Notify(wire.NoticeFromWire(r, relay.NodeCallOf(ctx).ID)))
}
