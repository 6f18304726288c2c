package rpc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
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

// snapshotService saves and restores.
type snapshotService struct {
	service

	backups     Backups
	clusterName string
	peers       peers
	count       func()
	// saving bounds the backups that are saved.
	saving *limiter
}

// Save streams a backup of this node's state.
func (s snapshotService) Save(ctx context.Context, r *quoratev1.SaveRequest, stream *connect.ServerStream[quoratev1.SaveResponse]) error {
	by := ticketOf(ctx).caller
	if err := s.saving.TryAcquire(by, 1); err != nil {
		return err
	}
	defer s.saving.Release(by, 1)
	options := toReadOptions(r.GetRead())
	chunks := &chunker{send: func(data []byte) error {
		extendSending(ctx, 0)
		return stream.Send(&quoratev1.SaveResponse{Message: &quoratev1.SaveResponse_Chunk{Chunk: data}})
	}}
	saved, err := s.backups.Save(ctx, options, chunks)
	if err == nil {
		err = chunks.flushBuffer()
	}
	if err != nil {
		return s.readFailure(err, options)
	}
	extendSending(ctx, 0)
	return stream.Send(&quoratev1.SaveResponse{Message: &quoratev1.SaveResponse_Summary{Summary: &quoratev1.SaveSummary{
		Size: chunks.size, Sha256: chunks.digestSum(), Index: saved.Index, ServedBy: s.id,
	}}})
}

// Restore asks the leader first and keeps nothing itself: the leader reads the file as it comes, once it has found that it may
// restore; another node passes the messages on.
func (s snapshotService) Restore(ctx context.Context, stream *connect.ClientStream[quoratev1.RestoreRequest]) (*quoratev1.RestoreResponse, error) {
	answer, err := s.restoreBackup(ctx, stream)
	if err != nil {
		drainStream(ctx, stream)
	}
	return answer, err
}

func (s snapshotService) restoreBackup(ctx context.Context, stream *connect.ClientStream[quoratev1.RestoreRequest]) (*quoratev1.RestoreResponse, error) {
	extendReceiving(ctx, time.Now().Add(messagePatience(ctx)))
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
	case leader.ID == s.id:
		return s.restoreLocally(ctx, confirmation, file)
	case relayedByOf(ctx) != "":
		return nil, nodeError(&cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s relayed this restore to %s, which does not lead; nothing was done, repeat it", relayedByOf(ctx), s.id),
		})
	}
	return s.relayRestore(ctx, leader, confirmation, file)
}

// readConfirmation reads the first message.
func (s snapshotService) readConfirmation(stream *connect.ClientStream[quoratev1.RestoreRequest]) (*quoratev1.RestoreConfirmation, error) {
	if !stream.Receive() {
		return nil, streamEndError(stream, "the first message must confirm the restore, and there was none")
	}
	confirmation := stream.Msg().GetConfirmation()
	switch {
	case confirmation == nil:
		return nil, toError(invalidField("confirmation", "the first message must confirm the restore, and this one does not"))
	case confirmation.GetClusterName() != s.clusterName:
		return nil, toError(invalidField("confirmation.cluster_name", "the restore was confirmed for cluster %q, but this is %q; nothing was changed",
			confirmation.GetClusterName(), s.clusterName))
	}
	return confirmation, nil
}

// streamEndError says why a stream ended: it broke off, or what it carried was wrong.
func streamEndError(stream *connect.ClientStream[quoratev1.RestoreRequest], format string, args ...any) error {
	if err := stream.Err(); err != nil {
		return err
	}
	return toError(invalidField("chunk", format, args...))
}

func (s snapshotService) restoreLocally(ctx context.Context, confirmation *quoratev1.RestoreConfirmation, file *fileStream) (*quoratev1.RestoreResponse, error) {
	options := cluster.RestoreOptions{Size: file.size, RaiseLevel: confirmation.GetRaiseLevel()}
	done, err := s.backups.Restore(ctx, options, file)
	if err != nil && file.failed != nil {
		return nil, file.failed // the file did not come; that it looks damaged then says less
	}
	if err != nil {
		return nil, toError(err)
	}
	return &quoratev1.RestoreResponse{
		Index: done.Index, BackupIndex: done.Backup.Index, Fence: done.Header.Fence, Revision: done.Header.Revision,
		LedgerTimeMs: int64(done.Header.Now.At), ServedBy: s.id,
	}, nil
}

// relayRestore passes the file on to the leader as it comes.
func (s snapshotService) relayRestore(
	ctx context.Context, leader cluster.Member, confirmation *quoratev1.RestoreConfirmation, file *fileStream,
) (*quoratev1.RestoreResponse, error) {
	url := s.peers.urlOf(leader)
	if url == "" {
		return nil, relayFailure(s.id, leader, "", errNoAddress)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := quoratev1connect.NewSnapshotServiceClient(&http.Client{Transport: s.peers.transport}, url,
		connect.WithReadMaxBytes(MaxBody), connect.WithInterceptors(relayMarker(s.id)))
	stream, err := client.Restore(ctx)
	if err != nil {
		return nil, relayFailure(s.id, leader, s.peers.addressOf(leader), err)
	}
	// What fails while sending is told by the answer: the leader may refuse at any time.
	err = stream.Send(&quoratev1.RestoreRequest{Message: &quoratev1.RestoreRequest_Confirmation{Confirmation: confirmation}})
	for err == nil {
		var chunk []byte
		if chunk, err = file.nextPiece(); err == nil {
			err = stream.Send(&quoratev1.RestoreRequest{Message: &quoratev1.RestoreRequest_Chunk{Chunk: chunk}})
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

// waitLeader waits for one as a relayed call does.
func (s snapshotService) waitLeader(ctx context.Context) (cluster.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	leader, err := s.node.WaitLeader(ctx)
	if err != nil {
		return cluster.Member{}, waitFailure(err)
	}
	return leader, nil
}

// relayResult counts a restore that the leader carried out, or says what became of it.
func (s snapshotService) relayResult(leader cluster.Member, err error) error {
	if err == nil {
		s.count()
		return nil
	}
	failure := toFailure(toError(err))
	answered := failure.GetProblem() != nil || failure.GetDecision() != nil
	broken := []connect.Code{connect.CodeUnavailable, connect.CodeInternal, connect.CodeUnknown}
	if !answered && slices.Contains(broken, connect.CodeOf(err)) {
		return relayFailure(s.id, leader, s.peers.addressOf(leader), err)
	}
	return err
}

// relayedByOf is the node that relayed a call, or empty.
func relayedByOf(ctx context.Context) string {
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return call.RequestHeader().Get(relayedByHeader)
	}
	return ""
}

// relayMarker marks streams as relayed, by the node of that name.
type relayMarker string

// WrapUnary does nothing.
func (m relayMarker) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingHandler does nothing.
func (m relayMarker) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient adds the mark.
func (m relayMarker) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(relayedByHeader, string(m))
		return conn
	}
}
