package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// watchSilence is how long a stream may be silent. Servers send a message at least every few seconds.
const watchSilence = 20 * time.Second

// Watch calls report with every change of what the request watches after its position, in order, until the context
// ends or report returns an error, which Watch then returns. If a server fails, or the token ends that the stream began
// with and its source has another one, Watch continues at the next server from the same position.
//
// The error has the code out_of_range if the servers no longer have the changes after that position: list the
// allocations, and watch from the index of that answer. It is ErrUnavailable if no server answered for as long as
// WithPatience says.
func (c *Client) Watch(
	ctx context.Context,
	request *quoratev1.WatchEventsRequest,
	report func(*quoratev1.WatchEventsResponse) error,
) error {
	return newWatch(c, proto.CloneOf(request), report, c.notice).readStreams(ctx)
}

func newWatch(
	c *Client, from *quoratev1.WatchEventsRequest, report func(*quoratev1.WatchEventsResponse) error,
	notice func(error),
) *watch {
	w := &watch{streamReader: streamReader{client: c, notice: notice, patience: c.patience}, from: from, report: report}
	w.readStream = w.readChanges
	return w
}

// streamReader reads one stream after the other, from any server.
type streamReader struct {
	client *Client
	// readStream reads a stream to its end. It calls alive for each message, and sets reportErr if its caller has returned
	// an error.
	readStream func(ctx context.Context, alive func()) error
	reportErr  error
	notice     func(error) // is called with the reason why a stream ended
	patience   time.Duration
	heard      time.Time // when the last message arrived
}

func (w *streamReader) readStreams(ctx context.Context) error {
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
		case time.Since(w.heard) > w.patience:
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

// isFinal reports whether a server has refused to continue for another reason than that the caller was too slow.
func isFinal(err error) bool {
	return connect.IsWireError(err) && !isTransient(err) && connect.CodeOf(err) != connect.CodeResourceExhausted
}

type watch struct {
	streamReader
	from   *quoratev1.WatchEventsRequest
	report func(*quoratev1.WatchEventsResponse) error
}

// errSilent is the error of a stream that stopped without an error.
var errSilent = connect.NewError(connect.CodeUnavailable, errors.New("the stream is silent"))

func (w *streamReader) readOneStream(ctx context.Context) error {
	index := w.client.servers.currentIndex()
	defer w.client.servers.advanceFrom(index)
	ctx, sent := withSentToken(withServer(ctx, index))
	streaming, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(watchSilence, func() { cancel(errSilent) })
	defer silence.Stop()

	err := w.readStream(streaming, func() {
		w.heard = time.Now()
		silence.Reset(watchSilence)
	})
	if errors.Is(context.Cause(streaming), errSilent) {
		err = errSilent
	}
	switch {
	case w.client.tokens.isReplaced(ctx, sent, err):
		err = connect.NewError(connect.CodeUnavailable, fmt.Errorf("the token was replaced: %w", err))
	case isFinal(err):
		return err
	case err == nil:
		err = connect.NewError(connect.CodeUnavailable, errors.New("the stream has ended"))
	}
	return fmt.Errorf("%s: %w", w.client.servers.urls[index].Host, err)
}

func (w *watch) readChanges(ctx context.Context, alive func()) error {
	stream, err := w.client.Events.WatchEvents(ctx, w.from)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it was read to its end, or is given up
	for stream.Receive() {
		alive()
		message := stream.Msg()
		if message.GetPayload() != nil {
			if w.reportErr = w.report(message); w.reportErr != nil {
				return w.reportErr
			}
		}
		w.from.AfterIndex, w.from.AfterNumber = message.GetIndex(), message.GetNumber()
	}
	return stream.Err()
}
