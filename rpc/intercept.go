package rpc

import (
	"context"
	"errors"
	"sync"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/validate"

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/wire"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// handlerOptions are what all our Connect handlers share. Interceptors run in this order.
func handlerOptions(
	validator protovalidate.Validator, elements *wirelimit.Checker, t observe.Traces,
) []connect.HandlerOption {
	return append(codec.Options(elements), connect.WithInterceptors(append(t.HandlerInterceptors(),
		fitErrors{},
		observe.Afterwards(observe.NoteCode),
		observe.Afterwards(identify.TellEnd),
		observe.Afterwards(nameField),
		validate.NewInterceptor(validate.WithValidator(validator)),
	)...))
}

// fitErrors keeps the errors of calls within the bounds of their protocols.
type fitErrors struct{}

// WrapUnary is for calls with one answer.
func (fitErrors) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		return answer, wire.FitError(err, r.Peer().Protocol == connect.ProtocolGRPC)
	}
}

// WrapStreamingHandler is for streams.
func (fitErrors) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error {
		return wire.FitError(next(ctx, stream), stream.Peer().Protocol == connect.ProtocolGRPC)
	}
}

// WrapStreamingClient does nothing: the interceptor is used only by servers.
func (fitErrors) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// newValidator compiles the rules of a request when the first one comes, in about a millisecond: compiling those of all
// would take longer than everything else that a server does to begin. All servers of a process share it.
var newValidator = sync.OnceValues(func() (protovalidate.Validator, error) {
	rules, err := protovalidate.New()
	return wire.BoundedValidator{Rules: rules}, err
})

// nameField gives a request that breaks a rule of its schema the same typed detail as any other refusal.
func nameField(_ context.Context, err error) error {
	var over *wirelimit.Error
	if errors.As(err, &over) { // a message of a stream
		return codec.OverBoundError(err)
	}
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	for _, detail := range failed.Details() {
		value, broken := detail.Value()
		if violations, ok := value.(*validatepb.Violations); broken == nil && ok {
			return wire.WithDetail(failed, wire.SchemaProblem(violations))
		}
	}
	return err
}
