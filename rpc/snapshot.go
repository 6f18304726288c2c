package rpc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

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
	Save(ctx context.Context, o cluster.ReadOptions, out io.Writer) (cluster.Saved, error)
	// Restore replaces the state of the whole cluster. Only the leader can.
	Restore(ctx context.Context, file io.Reader) (cluster.Restored, error)
	// Scratch is a file that is gone when it is closed.
	Scratch() (*os.File, error)
}

// snapshotService saves and restores.
type snapshotService struct {
	core

	backups     Backups
	clusterName string
	peers       peers
	count       func()
}

// Save streams a backup of this node's state.
func (s snapshotService) Save(ctx context.Context, r *quoratev1.SaveRequest, stream *connect.ServerStream[quoratev1.SaveResponse]) error {
	options := toReadOptions(r.GetRead())
	chunks := &chunker{send: func(data []byte) error {
		extendSending(ctx, 0)
		return stream.Send(&quoratev1.SaveResponse{Message: &quoratev1.SaveResponse_Chunk{Chunk: data}})
	}}
	saved, err := s.backups.Save(ctx, options, chunks)
	if err == nil {
		err = chunks.flush()
	}
	if err != nil {
		return s.readFailure(err, options)
	}
	extendSending(ctx, 0)
	return stream.Send(&quoratev1.SaveResponse{Message: &quoratev1.SaveResponse_Summary{Summary: &quoratev1.SaveSummary{
		Size: chunks.size, Sha256: chunks.sum(), Index: saved.Index, ServedBy: s.id,
	}}})
}

// Restore takes the whole file first, so that a caller who goes away changes nothing, and hands it to the leader.
func (s snapshotService) Restore(ctx context.Context, stream *connect.ClientStream[quoratev1.RestoreRequest]) (*quoratev1.RestoreResponse, error) {
	confirmation, err := s.confirmed(stream)
	if err != nil {
		drain(stream)
		return nil, err
	}
	file, err := s.backups.Scratch()
	if err != nil {
		return nil, toError(&cluster.Error{
			Reason: cluster.Busy, NotApplied: true, Cause: err, Text: fmt.Sprintf("the backup cannot be kept in the data folder of %s", s.id),
		})
	}
	defer file.Close() //nolint:errcheck // its name is gone already, and so is what is in it
	if err := receiveFile(stream, confirmation, file); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, toError(err)
	}
	leader, err := anywhere{id: s.id, node: s.node}.leader(ctx)
	switch {
	case err != nil:
		return nil, err
	case leader.ID == s.id:
		return s.restoreHere(ctx, file)
	case relayedBy(ctx) != "":
		return nil, accident(&cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s relayed this restore to %s, which does not lead; nothing was done, repeat it", relayedBy(ctx), s.id),
		})
	}
	return s.restoreThere(ctx, leader, confirmation, file)
}

// confirmed reads the first message.
func (s snapshotService) confirmed(stream *connect.ClientStream[quoratev1.RestoreRequest]) (*quoratev1.RestoreConfirmation, error) {
	if !stream.Receive() {
		return nil, endOf(stream, "the first message must confirm the restore, and there was none")
	}
	confirmation := stream.Msg().GetConfirmation()
	switch {
	case confirmation == nil:
		return nil, toError(invalid("confirmation", "the first message must confirm the restore, and this one does not"))
	case confirmation.GetClusterName() != s.clusterName:
		return nil, toError(invalid("confirmation.cluster_name", "the restore was confirmed for cluster %q, but this is %q; nothing was changed",
			confirmation.GetClusterName(), s.clusterName))
	}
	return confirmation, nil
}

// drain throws away what still comes, up to a bound: a caller that sends does not listen, and would see nothing but a broken
// connection.
func drain(stream *connect.ClientStream[quoratev1.RestoreRequest]) {
	for left := drained; left > 0 && stream.Receive(); left -= len(stream.Msg().GetChunk()) + 1 {
	}
}

// receiveFile takes exactly as many bytes as were announced.
func receiveFile(stream *connect.ClientStream[quoratev1.RestoreRequest], confirmation *quoratev1.RestoreConfirmation, file io.Writer) error {
	var size uint64
	for stream.Receive() {
		chunk := stream.Msg().GetChunk()
		if size += uint64(len(chunk)); size > confirmation.GetSize() {
			break
		}
		if _, err := file.Write(chunk); err != nil {
			return toError(err)
		}
	}
	if size == confirmation.GetSize() && stream.Err() == nil {
		return nil
	}
	return endOf(stream, "%d bytes of the backup were announced, but %d came; nothing was changed", confirmation.GetSize(), size)
}

// endOf says why a stream ended: it broke off, or what it carried was wrong.
func endOf(stream *connect.ClientStream[quoratev1.RestoreRequest], format string, args ...any) error {
	if err := stream.Err(); err != nil {
		return err
	}
	return toError(invalid("chunk", format, args...))
}

func (s snapshotService) restoreHere(ctx context.Context, file io.Reader) (*quoratev1.RestoreResponse, error) {
	done, err := s.backups.Restore(ctx, file)
	if err != nil {
		return nil, toError(err)
	}
	return &quoratev1.RestoreResponse{
		Index: done.Index, BackupIndex: done.Backup.Index, Fence: done.Header.Fence, Revision: done.Header.Revision,
		LedgerTimeMs: int64(done.Header.Now.At), ServedBy: s.id,
	}, nil
}

// restoreThere gives the file to the leader.
func (s snapshotService) restoreThere(
	ctx context.Context, leader cluster.Member, confirmation *quoratev1.RestoreConfirmation, file io.Reader,
) (*quoratev1.RestoreResponse, error) {
	url := s.peers.url(leader)
	if url == "" {
		return nil, relayFailure(s.id, leader, "", errNoAddress)
	}
	client := quoratev1connect.NewSnapshotServiceClient(&http.Client{Transport: s.peers.transport}, url,
		connect.WithReadMaxBytes(MaxBody), connect.WithInterceptors(relayMark(s.id)))
	stream, err := client.Restore(ctx)
	if err != nil {
		return nil, relayFailure(s.id, leader, s.peers.at(leader), err)
	}
	// What fails while sending is told by the answer.
	if stream.Send(&quoratev1.RestoreRequest{Message: &quoratev1.RestoreRequest_Confirmation{Confirmation: confirmation}}) == nil {
		chunks := &chunker{send: func(data []byte) error {
			return stream.Send(&quoratev1.RestoreRequest{Message: &quoratev1.RestoreRequest_Chunk{Chunk: data}})
		}}
		if _, err := io.Copy(chunks, file); err == nil {
			_ = chunks.flush()
		}
	}
	answer, err := stream.CloseAndReceive()
	return answer, anywhere{id: s.id, peers: s.peers, count: s.count}.relayed(leader, err)
}

// relayedBy is the node that relayed a call, or empty.
func relayedBy(ctx context.Context) string {
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return call.RequestHeader().Get(relayedByHeader)
	}
	return ""
}

// relayMark marks streams as relayed, by the node of that name.
type relayMark string

// WrapUnary does nothing.
func (m relayMark) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingHandler does nothing.
func (m relayMark) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient adds the mark.
func (m relayMark) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(relayedByHeader, string(m))
		return conn
	}
}
