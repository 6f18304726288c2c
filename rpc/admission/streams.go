package admission

import (
	"context"
	"net/http"
	"time"

	"github.com/quorate/quorate/rpc/pipeline"
)

// EndWithServer returns the step that ends streams when the server begins to shut down, which ends the context streams:
// they would never end by themselves.
func (a *Controller) EndWithServer(streams context.Context) pipeline.Step {
	return func(x *pipeline.Exchange) bool {
		if !a.procedures.IsUnary(x.Request.URL.Path) {
			a.endStreamWith(streams, x)
		}
		return true
	}
}

func (a *Controller) endStreamWith(streams context.Context, x *pipeline.Exchange) {
	control := http.NewResponseController(x.Writer)
	// that of calls with one answer would cut a stream; a recorded connection has none
	_ = control.SetWriteDeadline(time.Time{})
	x.Attach(streamDeadlinesKey{}, streamDeadlines{control, a.Limits.SendPatience})
	ctx, cancel := context.WithCancel(x.Request.Context())
	x.AtEnd(cancel)
	x.SetContext(ctx)
	ended := make(chan struct{})
	stop := context.AfterFunc(streams, func() {
		defer close(ended)
		cancel()
		// A handler that waits for the caller's next message does not look at its context.
		_ = control.SetReadDeadline(time.Now())
	})
	x.AtEnd(func() {
		if !stop() {
			<-ended // the writer must not be touched once the call has ended
		}
	})
}

type streamDeadlinesKey struct{}

type streamDeadlines struct {
	control  *http.ResponseController
	patience time.Duration
}

// ExtendSending gives a stream's caller some time to receive what is sent next, and that within a while; then the
// stream breaks. Not every connection has deadlines (a recorded one in a test has none).
func ExtendSending(ctx context.Context, within time.Duration) {
	if to, ok := ctx.Value(streamDeadlinesKey{}).(streamDeadlines); ok {
		_ = to.control.SetWriteDeadline(time.Now().Add(within + to.patience))
	}
}

// KeepSendingOpen lets a stream be without a message for as long as its caller keeps the connection.
func KeepSendingOpen(ctx context.Context) {
	if to, ok := ctx.Value(streamDeadlinesKey{}).(streamDeadlines); ok {
		_ = to.control.SetWriteDeadline(time.Time{})
	}
}

// EndReceiving ends a stream that waits for the next message of its caller.
func EndReceiving(ctx context.Context) { ExtendReceiving(ctx, time.Now()) }

// MessagePatience is how long the next message of a restore may take to come.
func MessagePatience(ctx context.Context) time.Duration {
	from, _ := ctx.Value(streamDeadlinesKey{}).(streamDeadlines)
	return from.patience
}

// ExtendReceiving bounds until when the next message of a stream must have come; then the stream breaks. Not every
// connection has deadlines (a recorded one in a test has none).
func ExtendReceiving(ctx context.Context, until time.Time) {
	if from, ok := ctx.Value(streamDeadlinesKey{}).(streamDeadlines); ok {
		_ = from.control.SetReadDeadline(until)
	}
}
