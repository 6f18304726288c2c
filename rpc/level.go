package rpc

import (
	"fmt"
	"net/http"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// checkLevel refuses a call that needs a feature level which the leader does not have. A leader of an earlier version
// would answer that it does not know the method, or leave out fields that it does not know without an error. A leader
// that has the feature decides by itself.
func (s *Server) checkLevel(r *http.Request, leader cluster.Member) error {
	level := s.node.Level()
	if level.Current >= level.Supported {
		return nil // most calls end here, and are not decoded
	}
	needed := s.levelOf(r)
	if needed <= level.Current {
		return nil
	}
	// The leader may have been downgraded since it last said what it understands.
	if answer, err := s.peers.GetStanding(r.Context(), leader); err == nil {
		leader.FeatureLevel, leader.Version = answer.GetFeatureLevel(), answer.GetVersion()
	}
	if leader.FeatureLevel >= needed {
		return nil
	}
	if err := s.node.CheckLevel(needed); err != nil {
		return wire.ToError(err)
	}
	return wire.NodeError(&cluster.Error{
		Reason: cluster.NotUpgraded, NotApplied: true, Leader: leader.ID,
		Text: fmt.Sprintf("this needs feature level %d, and the leader %s (version %s, feature level %d) does not have it; "+
			"upgrade it", needed, leader.ID, leader.Version, leader.FeatureLevel),
	})
}

// levelOf is the feature level that a call needs.
func (s *Server) levelOf(r *http.Request) uint32 {
	known := s.procedures[r.URL.Path]
	if request, found := codec.Decode(r, known.Input); found {
		return max(known.Level, procedures.LevelOf(request))
	}
	return known.Level
}
