package host

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
)

// transport is raft's transport over TCP, with addresses that name the node that must answer. Raft has a
// ServerAddressProvider for that purpose. It is not used because raft also asks it for the sender's address in
// messages, and because it gets the id without the address that raft means (docs/adr/0054).
type transport struct {
	*raft.NetworkTransport
}

var (
	_ raft.Transport   = transport{}
	_ raft.WithPreVote = transport{}
	_ raft.WithClose   = transport{}
)

func openTransport(c cluster.Config, s Security) (transport, *streamLayer, error) {
	log := c.Logger.Named("raft-net")
	layer, err := listenRaft(c.RaftAddr, c.RaftAdvertise, s, log)
	if err != nil {
		return transport{}, nil, err
	}
	return transport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer, MaxPool: raftPool, Timeout: raftTimeout, MsgpackUseNewTimeFormat: true,
		Logger: transportLog{log},
	})}, layer, nil
}

// AppendEntries sends entries to a node.
func (t transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	return t.NetworkTransport.AppendEntries(id, withID(id, target), args, resp)
}

// AppendEntriesPipeline sends entries to a node without waiting for each answer.
func (t transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	return t.NetworkTransport.AppendEntriesPipeline(id, withID(id, target))
}

// RequestVote requests the vote of a node.
func (t transport) RequestVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	return t.NetworkTransport.RequestVote(id, withID(id, target), args, resp)
}

// RequestPreVote asks a node whether it would vote for this node.
func (t transport) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return t.NetworkTransport.RequestPreVote(id, withID(id, target), args, resp)
}

// InstallSnapshot sends a snapshot to a node.
func (t transport) InstallSnapshot(
	id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	return t.NetworkTransport.InstallSnapshot(id, withID(id, target), args, resp, data)
}

// TimeoutNow makes a node start an election.
func (t transport) TimeoutNow(
	id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	return t.NetworkTransport.TimeoutNow(id, withID(id, target), args, resp)
}

// transportLog demotes two errors to debug level: that a transport that is being shut down reads no more, and the same
// for a connection that this node has closed to renew it.
type transportLog struct{ hclog.Logger }

// Error logs an error, at debug level if it only says that the transport or the connection is closed.
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
