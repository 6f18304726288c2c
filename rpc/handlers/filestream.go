package handlers

import (
	"context"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/wire"
)

const (
	// leastFileRate is how many bytes a second of a restore must come on average: only one restore runs at a time.
	leastFileRate = 256 << 10
	// drainPatience is how long the rest of a restore that was refused may take to come.
	drainPatience = 5 * time.Second
)

// fileStream reads exactly as many bytes from the messages of a stream as were announced, and waits for them only so
// long.
type fileStream struct {
	ctx    context.Context //nolint:containedctx // it is that of the stream
	stream *connect.ClientStream[adminv1.RestoreRequest]
	size   int64
	until  time.Time

	received int64
	unread   []byte
	ended    bool
	failed   error // why the file did not come whole
}

func newFileStream(
	ctx context.Context, stream *connect.ClientStream[adminv1.RestoreRequest], size int64,
) *fileStream {
	until := time.Now().Add(admission.MessagePatience(ctx) + time.Duration(size/leastFileRate)*time.Second)
	return &fileStream{ctx: ctx, stream: stream, size: size, until: until}
}

// nextPiece is the next piece, io.EOF at the end of a file that came whole.
func (f *fileStream) nextPiece() ([]byte, error) {
	for !f.ended && f.failed == nil {
		deadline := time.Now().Add(admission.MessagePatience(f.ctx))
		if f.until.Before(deadline) {
			deadline = f.until
		}
		admission.ExtendReceiving(f.ctx, deadline)
		if !f.stream.Receive() {
			f.ended, f.failed = true, f.endError(deadline)
			// otherwise the connection would be considered broken during the restore
			admission.ExtendReceiving(f.ctx, time.Time{})
			break
		}
		chunk := f.stream.Msg().GetChunk()
		f.received += int64(len(chunk))
		switch {
		case f.received > f.size:
			f.failed = streamEndError(f.stream,
				"%d bytes of the backup were announced, but more came; nothing was changed", f.size)
		case !time.Now().Before(f.until):
			f.failed = slowFileError(f.received, f.size)
		case len(chunk) > 0:
			return chunk, nil
		}
	}
	if f.failed != nil {
		return nil, f.failed
	}
	return nil, io.EOF
}

// endError is nil if the stream ended where the file ends.
func (f *fileStream) endError(deadline time.Time) error {
	if !time.Now().Before(deadline) && f.stream.Err() != nil {
		return slowFileError(f.received, f.size)
	}
	if f.stream.Err() != nil || f.received != f.size {
		return streamEndError(f.stream, "%d bytes of the backup were announced, but %d came; nothing was changed",
			f.size, f.received)
	}
	return nil
}

func slowFileError(came, size int64) error {
	return wire.ToError(&cluster.Error{
		Reason: cluster.Deadline, NotApplied: true,
		Text: fmt.Sprintf(
			"the backup came too slowly: %d of %d bytes within the time that a restore may take to arrive (30 s for "+
				"each message, and "+
				"256 KiB a second); send it to a server that is nearer; nothing was changed", came, size),
	})
}

// Read reads on from the last piece.
func (f *fileStream) Read(data []byte) (int, error) {
	if len(f.unread) == 0 {
		piece, err := f.nextPiece()
		if err != nil {
			return 0, err
		}
		f.unread = piece
	}
	count := copy(data, f.unread)
	f.unread = f.unread[count:]
	return count, nil
}

// drainStream throws away what still comes, up to a bound: a caller that sends does not listen, and would see nothing
// but a broken connection.
func drainStream(ctx context.Context, stream *connect.ClientStream[adminv1.RestoreRequest]) {
	admission.ExtendReceiving(ctx, time.Now().Add(drainPatience))
	for left := admission.MaxDrained; left > 0 && stream.Receive(); left -= len(stream.Msg().GetChunk()) + 1 {
	}
}
