package handlers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// chunkBytes is how much of a file goes into one message.
const chunkBytes = 256 << 10

// Backups is what saves and restores the state of the node below; [cluster.Node] does.
type Backups interface {
	// Save writes a backup, as fresh as the options ask.
	Save(ctx context.Context, o cluster.ReadOptions, out io.Writer) (cluster.BackupInfo, error)
	// Restore replaces the state of the whole cluster. Only the leader can.
	Restore(ctx context.Context, o cluster.RestoreOptions, file io.Reader) (cluster.RestoreResult, error)
}

// SnapshotService saves and restores.
type SnapshotService struct {
	Service

	Backups     Backups
	ClusterName string
	Peers       relay.Peers
	Count       func()
	// Saving bounds the backups that are saved.
	Saving *admission.Limiter
}

// Save streams a backup of this node's state.
func (s SnapshotService) Save(
	ctx context.Context, r *adminv1.SaveRequest, stream *connect.ServerStream[adminv1.SaveResponse],
) error {
	caller := admission.TicketOf(ctx).Caller
	if err := s.Saving.TryAcquire(caller, 1); err != nil {
		return err
	}
	defer s.Saving.Release(caller, 1)
	options := toReadOptions(r.GetRead())
	chunks := &chunker{send: func(data []byte) error {
		admission.ExtendSending(ctx, 0)
		return stream.Send(&adminv1.SaveResponse{Message: &adminv1.SaveResponse_Chunk{Chunk: data}})
	}}
	saved, err := s.Backups.Save(ctx, options, chunks)
	if err == nil {
		err = chunks.flushBuffer()
	}
	if err != nil {
		return s.readFailure(err, options)
	}
	admission.ExtendSending(ctx, 0)
	return stream.Send(&adminv1.SaveResponse{Message: &adminv1.SaveResponse_Summary{Summary: &adminv1.SaveSummary{
		Size: chunks.size, Sha256: chunks.digestSum(), Index: saved.Index, ServedBy: s.ID,
	}}})
}

// Restore asks the leader first and keeps nothing itself: the leader reads the file as it comes, once it has found
// that it may restore; another node passes the messages on.
func (s SnapshotService) Restore(
	ctx context.Context, stream *connect.ClientStream[adminv1.RestoreRequest],
) (*adminv1.RestoreResponse, error) {
	answer, err := s.restoreBackup(ctx, stream)
	if err != nil {
		drainStream(ctx, stream)
	}
	return answer, err
}

func (s SnapshotService) restoreBackup(
	ctx context.Context, stream *connect.ClientStream[adminv1.RestoreRequest],
) (*adminv1.RestoreResponse, error) {
	// The bindings of nodes are those of the file, which anyone can make: restoring it is a change of access.
	if err := s.Access.RequireCluster(ctx, access.AccessManage); err != nil {
		return nil, err
	}
	admission.ExtendReceiving(ctx, time.Now().Add(admission.MessagePatience(ctx)))
	confirmation, err := s.readConfirmation(stream)
	if err != nil {
		return nil, err
	}
	leader, err := s.waitLeader(ctx)
	if err != nil {
		return nil, err
	}
	file := newFileStream(ctx, stream, int64(confirmation.GetSize()))
	switch {
	case leader.ID == s.ID:
		return s.restoreLocally(ctx, confirmation, file)
	case relayedByOf(ctx) != "":
		return nil, wire.NodeError(&cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s relayed this restore to %s, which does not lead; nothing was done, repeat it",
				relayedByOf(ctx), s.ID),
		})
	}
	return s.relayRestore(ctx, leader, confirmation, file)
}

func (s SnapshotService) readConfirmation(
	stream *connect.ClientStream[adminv1.RestoreRequest],
) (*adminv1.RestoreConfirmation, error) {
	if !stream.Receive() {
		return nil, streamEndError(stream, "the first message must confirm the restore, and there was none")
	}
	confirmation := stream.Msg().GetConfirmation()
	switch {
	case confirmation == nil:
		return nil, wire.ToError(
			wire.InvalidField("confirmation", "the first message must confirm the restore, and this one does not"))
	case confirmation.GetClusterName() != s.ClusterName:
		return nil, wire.ToError(
			wire.InvalidField("confirmation.cluster_name",
				"the restore was confirmed for cluster %q, but this is %q; nothing was changed",
				confirmation.GetClusterName(), s.ClusterName))
	}
	return confirmation, nil
}

// streamEndError returns why a stream ended: it was aborted, or its content was invalid.
func streamEndError(stream *connect.ClientStream[adminv1.RestoreRequest], format string, args ...any) error {
	if err := stream.Err(); err != nil {
		return err
	}
	return wire.ToError(wire.InvalidField("chunk", format, args...))
}

func (s SnapshotService) restoreLocally(
	ctx context.Context, confirmation *adminv1.RestoreConfirmation, file *fileStream,
) (*adminv1.RestoreResponse, error) {
	intent := audit.Record{
		Kind: audit.Intent, Action: "Restore", Actor: cluster.AuditActor(identify.CallerOf(ctx)), Outcome: audit.Asked,
		Detail: fmt.Sprintf("a backup of %d bytes", file.size),
	}
	if err := s.requireIntents(ctx, []audit.Record{intent}); err != nil {
		return nil, err
	}
	options := cluster.RestoreOptions{Size: file.size, RaiseLevel: confirmation.GetRaiseLevel()}
	done, err := s.Backups.Restore(ctx, options, file)
	if err != nil && file.failed != nil {
		return nil, file.failed // the file did not arrive, which explains more than the damage that follows from it
	}
	if err != nil {
		return nil, wire.ToError(err)
	}
	return &adminv1.RestoreResponse{
		Index: done.Index, BackupIndex: done.Backup.Index, Fence: done.Header.Fence, Revision: done.Header.Revision,
		LedgerTimeMs: int64(done.Header.Now.At), ServedBy: s.ID,
	}, nil
}

// relayRestore passes the file on to the leader as it arrives.
func (s SnapshotService) relayRestore(
	ctx context.Context, leader cluster.Member, confirmation *adminv1.RestoreConfirmation, file *fileStream,
) (*adminv1.RestoreResponse, error) {
	url := s.Peers.URLOf(leader)
	if url == "" {
		return nil, relay.FailureOf(s.ID, leader, "", relay.ErrNoAddress)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	marker := relayMarker{relay: s.ID, passOn: func(header http.Header) { s.Peers.PassOn(ctx, header, leader) }}
	client := adminv1connect.NewSnapshotServiceClient(s.Peers.HTTPClient(), url,
		connect.WithReadMaxBytes(codec.MaxBody), connect.WithInterceptors(marker))
	stream, err := client.Restore(ctx)
	if err != nil {
		return nil, relay.FailureOf(s.ID, leader, s.Peers.AddressOf(leader), err)
	}
	// What fails while sending is told by the answer: the leader may refuse at any time.
	err = stream.Send(&adminv1.RestoreRequest{
		Message: &adminv1.RestoreRequest_Confirmation{Confirmation: confirmation},
	})
	for err == nil {
		var chunk []byte
		if chunk, err = file.nextPiece(); err == nil {
			err = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Chunk{Chunk: chunk}})
		}
	}
	if file.failed != nil { // the leader must not take what came for all of it
		cancel()
		_, _ = stream.CloseAndReceive() // it was cancelled
		return nil, file.failed
	}
	answer, err := stream.CloseAndReceive()
	return answer, s.relayResult(leader, err)
}

// waitLeader waits as a relayed call does.
func (s SnapshotService) waitLeader(ctx context.Context) (cluster.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, relay.LeaderPatience)
	defer cancel()
	leader, err := s.Node.WaitLeader(ctx)
	if err != nil {
		return cluster.Member{}, relay.WaitFailure(err)
	}
	return leader, nil
}

func (s SnapshotService) relayResult(leader cluster.Member, err error) error {
	if err == nil {
		s.Count()
		return nil
	}
	failure := wire.ToFailure(wire.ToError(err))
	answered := failure.GetProblem() != nil || failure.GetDecision() != nil
	broken := []connect.Code{connect.CodeUnavailable, connect.CodeInternal, connect.CodeUnknown}
	if !answered && slices.Contains(broken, connect.CodeOf(err)) {
		return relay.FailureOf(s.ID, leader, s.Peers.AddressOf(leader), err)
	}
	return err
}

func relayedByOf(ctx context.Context) string {
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return call.RequestHeader().Get(wire.RelayedByHeader)
	}
	return ""
}

// relayMarker also adds the credential of the caller.
type relayMarker struct {
	relay  string
	passOn func(http.Header)
}

// WrapUnary does nothing.
func (m relayMarker) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingHandler does nothing.
func (m relayMarker) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient adds both.
func (m relayMarker) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(wire.RelayedByHeader, m.relay)
		m.passOn(conn.RequestHeader())
		return conn
	}
}
