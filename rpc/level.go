package rpc

import (
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
	if level := s.node.Level(); leader.FeatureLevel >= level.Supported || level.Current >= level.Supported {
		return nil // most calls end here, and are not decoded
	}
	known := s.procedures[r.URL.Path]
	needed := known.Level
	if request, found := codec.Decode(r, known.Input); found {
		needed = max(needed, procedures.LevelOf(request))
	}
	if leader.FeatureLevel >= needed {
		return nil
	}
	if err := s.node.CheckLevel(needed); err != nil {
		return wire.ToError(err)
	}
	return nil
}
