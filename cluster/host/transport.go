package host

import (
	"errors"
	"net"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
)

// openTransport listens for raft.
func openTransport(c cluster.Config, s Security) (raft.Transport, error) {
	layer, err := listen(c.RaftAddr, c.RaftAdvertise)
	if err != nil {
		return nil, err
	}
	layer.secure(s, c.Logger.Named("raft-net"))
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer, MaxPool: raftPool, Timeout: raftTimeout, MsgpackUseNewTimeFormat: true,
		Logger: transportLog{c.Logger.Named("raft-net")},
	}), nil
}

// transportLog keeps back two complaints: that a transport which is being shut down reads no more, and neither does a
// connection that this node has closed to renew it.
type transportLog struct{ hclog.Logger }

// Error logs an error, or mentions it at debug level if it only says that the transport or the connection is closed.
func (l transportLog) Error(message string, args ...any) {
	closing := slices.ContainsFunc(args, func(arg any) bool {
		err, ok := arg.(error)
		return ok && (errors.Is(err, raft.ErrTransportShutdown) || errors.Is(err, net.ErrClosed))
	})
	if closing {
		l.Debug(message, args...)
		return
	}
	l.Logger.Error(message, args...)
}
