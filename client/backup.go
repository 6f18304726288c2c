package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// backupChunk is how many bytes of a backup are in one message.
const backupChunk = 256 << 10

// SaveBackup writes a backup of the state to out and verifies its digest. If a server fails before anything was
// written, it tries the next one, for as long as WithPatience says. An error after that leaves an incomplete backup
// in out.
func (c *Client) SaveBackup(
	ctx context.Context,
	request *adminv1.SaveRequest,
	out io.Writer,
) (*adminv1.SaveSummary, error) {
	var summary *adminv1.SaveSummary
	written := &countingWriter{out: out}
	err := c.tryServers(ctx, func(ctx context.Context) (again bool, err error) {
		summary, err = c.saveOnce(ctx, request, written)
		return written.bytes == 0, err
	})
	return summary, err
}

type countingWriter struct {
	out   io.Writer
	bytes uint64
}

// Write implements io.Writer.
func (c *countingWriter) Write(data []byte) (int, error) {
	n, err := c.out.Write(data)
	c.bytes += uint64(n)
	return n, err
}

func (c *Client) saveOnce(
	ctx context.Context,
	request *adminv1.SaveRequest,
	out *countingWriter,
) (*adminv1.SaveSummary, error) {
	stream, err := c.Snapshots.Save(ctx, request)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // it was read to its end or abandoned
	digest := sha256.New()
	for stream.Receive() {
		if summary := stream.Msg().GetSummary(); summary != nil {
			if summary.GetSize() != out.bytes || !bytes.Equal(summary.GetSha256(), digest.Sum(nil)) {
				return nil, fmt.Errorf(
					"the backup was damaged in transit: %d bytes were sent, %d arrived, or their SHA-256 differs",
					summary.GetSize(),
					out.bytes,
				)
			}
			return summary, nil
		}
		digest.Write(stream.Msg().GetChunk())
		if _, err := out.Write(stream.Msg().GetChunk()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return nil, connect.NewError(connect.CodeUnavailable, errors.New("the backup ended early"))
}

// RestoreBackup replaces the state of the cluster by that of a backup of the confirmed size. It tries the next server
// while it is certain that nothing was done. If it returns an error, MayBeDone reports whether the state may have been
// replaced nevertheless. Repeating a restore is safe.
func (c *Client) RestoreBackup(
	ctx context.Context, confirmation *adminv1.RestoreConfirmation, file io.ReadSeeker,
) (*adminv1.RestoreResponse, error) {
	var answer *adminv1.RestoreResponse
	err := c.tryServers(ctx, func(ctx context.Context) (again bool, err error) {
		if _, err = file.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		answer, err = c.restoreOnce(ctx, confirmation, file)
		return !MayBeDone(err), err
	})
	return answer, err
}

func (c *Client) restoreOnce(
	ctx context.Context, confirmation *adminv1.RestoreConfirmation, file io.Reader,
) (*adminv1.RestoreResponse, error) {
	stream, err := c.Snapshots.Restore(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(
		&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Confirmation{Confirmation: confirmation}},
	)
	chunk := make([]byte, backupChunk)
	for err == nil {
		var n int
		if n, err = io.ReadFull(file, chunk); n > 0 {
			sent := stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Chunk{Chunk: chunk[:n]}})
			err = errors.Join(err, sent)
		}
	}
	// io.EOF is the end of the file, or a server that has answered already.
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_, closed := stream.CloseAndReceive()
		return nil, errors.Join(err, closed)
	}
	return stream.CloseAndReceive()
}

// tryServers makes attempts until one is answered or may not be repeated, or the time of WithPatience is over.
func (c *Client) tryServers(ctx context.Context, once func(context.Context) (again bool, err error)) error {
	pause, begun := newPauses(), time.Now()
	replaced := false
	for {
		index := c.servers.currentIndex()
		attempt, sent := withSentToken(withServer(ctx, index))
		again, err := once(attempt)
		if again && !replaced && c.tokens.isReplaced(ctx, sent, err) {
			replaced = true
			continue
		}
		if err == nil || !isTransient(err) || !again {
			return err
		}
		c.servers.advanceFrom(index)
		if ctx.Err() != nil || time.Since(begun) > c.patience {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		c.notice(err)
		if sleepContext(ctx, pause.NextBackOff()) != nil {
			return context.Cause(ctx)
		}
	}
}
