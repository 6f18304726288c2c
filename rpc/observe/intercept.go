package observe

import (
	"context"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/rpc/wire"
)

// Afterwards is an interceptor that looks at what a call, of one answer or a stream of them, has come to.
type Afterwards func(ctx context.Context, err error) error

// WrapUnary is for calls with one answer.
func (a Afterwards) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		return answer, a(ctx, err)
	}
}

// WrapStreamingHandler is for streams.
func (a Afterwards) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error { return a(ctx, next(ctx, stream)) }
}

// WrapStreamingClient does nothing: the interceptor is used only by servers.
func (a Afterwards) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// NoteCode notes the answer's code for the log and the metrics. The plain error of a context, which Connect returns for
// a call whose caller has gone before the handler began, becomes one with a code: it is not a failure of the server.
func NoteCode(ctx context.Context, err error) error {
	if err == nil {
		CallOf(ctx).Code = CodeOK
		return nil
	}
	answer := wire.ToError(err)
	CallOf(ctx).Code = answer.Code().String()
	return answer
}
