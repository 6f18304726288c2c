package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// watchSilence is how long a stream may be silent: servers say every few seconds that they are alive.
const watchSilence = 20 * time.Second

// Watch calls report with every change of state of allocations after the position of the request, in order, until the
// context ends or report answers an error, which Watch then answers. When a server goes, Watch goes on at the next one
// where it was.
//
// Errors: out_of_range when the servers do not remember so far back (list, and watch from the index of that answer);
// ErrUnavailable when no server had anything to say for as long as the client is patient (WithPatience).
func (c *Client) Watch(
	ctx context.Context, request *quoratev1.WatchAllocationsRequest, report func(*quoratev1.WatchAllocationsResponse) error,
) error {
	return (&watch{client: c, from: proto.CloneOf(request), report: report, notice: c.notice}).readStreams(ctx)
}

// readStreams reads streams, one after the other.
func (w *watch) readStreams(ctx context.Context) error {
	w.heard = time.Now()
	pause := newPauses()
	for {
		heard := w.heard
		err := w.readOneStream(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case w.reportErr != nil:
			return w.reportErr
		case isFinal(err):
			return err
		case time.Since(w.heard) > w.client.patience:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		w.notice(err)
		if w.heard.After(heard) {
			pause = newPauses()
		}
		pause.last = err
		if err := sleepContext(ctx, pause.NextBackOff()); err != nil {
			return context.Cause(ctx)
		}
	}
}

// isFinal tells whether a server has said that it will not go on, for another reason than that the caller was too slow.
func isFinal(err error) bool {
	return connect.IsWireError(err) && !isTransient(err) && connect.CodeOf(err) != connect.CodeResourceExhausted
}

// watch is one call of Watch.
type watch struct {
	client    *Client
	from      *quoratev1.WatchAllocationsRequest
	report    func(*quoratev1.WatchAllocationsResponse) error
	notice    func(error) // is told why a stream broke off
	reportErr error       // what report has answered
	heard     time.Time   // when the last message came
}

// errSilent is a stream that has broken off without a word.
var errSilent = connect.NewError(connect.CodeUnavailable, errors.New("the stream is silent"))

// readOneStream reads one stream to its end, and leaves its server.
func (w *watch) readOneStream(ctx context.Context) error {
	index := w.client.servers.currentIndex()
	defer w.client.servers.advanceFrom(index)
	streaming, cancel := context.WithCancelCause(withServer(ctx, index))
	defer cancel(nil)
	silence := time.AfterFunc(watchSilence, func() { cancel(errSilent) })
	defer silence.Stop()

	err := w.readStream(streaming, func() { silence.Reset(watchSilence) })
	if errors.Is(context.Cause(streaming), errSilent) {
		err = errSilent
	}
	switch {
	case isFinal(err):
		return err
	case err == nil:
		err = connect.NewError(connect.CodeUnavailable, errors.New("the stream has ended"))
	}
	return fmt.Errorf("%s: %w", w.client.servers.urls[index].Host, err)
}

func (w *watch) readStream(ctx context.Context, alive func()) error {
	stream, err := w.client.Allocations.WatchAllocations(ctx, w.from)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it was read to its end, or is given up
	for stream.Receive() {
		alive()
		w.heard = time.Now()
		message := stream.Msg()
		if message.GetAllocation() != nil {
			if w.reportErr = w.report(message); w.reportErr != nil {
				return w.reportErr
			}
		}
		w.from.AfterIndex, w.from.AfterNumber = message.GetIndex(), message.GetNumber()
	}
	return stream.Err()
}
