package rpc

import (
	"context"
	"errors"
	"sync"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// handlerOptions are what all our Connect handlers share. Interceptors run in this order.
func handlerOptions(validator protovalidate.Validator, elements *wirelimit.Checker, t traces) []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(binaryCodec{elements}),
		connect.WithCodec(jsonCodec{"json", elements}),
		connect.WithCodec(jsonCodec{"json; charset=utf-8", elements}),
		connect.WithCompression("gzip", newDecompressor, newCompressor),
		connect.WithCompressMinBytes(1024),
		connect.WithReadMaxBytes(MaxBody),
		connect.WithInterceptors(append(t.handlerInterceptors(),
			afterwards(noteCode),
			afterwards(boundText),
			afterwards(nameField),
			validate.NewInterceptor(validate.WithValidator(validator)),
		)...),
	}
}

// newValidator knows the rules of every request beforehand, so that the first call is not slower than the second. All
// servers of a process share it, since compiling the rules takes longer than everything else that a server does to begin.
var newValidator = sync.OnceValues(compileRules)

func compileRules() (protovalidate.Validator, error) {
	var requests []proto.Message
	for _, file := range publicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				requests = append(requests, dynamicpb.NewMessage(methods.Get(j).Input()))
			}
		}
	}
	rules, err := protovalidate.New(protovalidate.WithMessages(requests...))
	return boundedValidator{rules}, err
}

// afterwards is an interceptor that looks at what a call, of one answer or a stream of them, has come to.
type afterwards func(ctx context.Context, err error) error

// WrapUnary is for calls with one answer.
func (a afterwards) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		return answer, a(ctx, err)
	}
}

// WrapStreamingHandler is for streams.
func (a afterwards) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error { return a(ctx, next(ctx, stream)) }
}

// WrapStreamingClient is for clients, of which there are none here.
func (a afterwards) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// noteCode notes the answer's code for the log and the metrics.
func noteCode(ctx context.Context, err error) error {
	callOf(ctx).code = "ok"
	if err != nil {
		callOf(ctx).code = connect.CodeOf(err).String()
	}
	return err
}

// nameField gives a request that breaks a rule of its schema the same typed detail as any other refusal.
func nameField(_ context.Context, err error) error {
	var over *wirelimit.Error
	if errors.As(err, &over) { // a message of a stream
		return overBoundError(err)
	}
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	for _, detail := range failed.Details() {
		value, broken := detail.Value()
		if violations, ok := value.(*validatepb.Violations); broken == nil && ok {
			return withDetail(failed, schemaProblem(violations))
		}
	}
	return err
}

func schemaProblem(v *validatepb.Violations) *quoratev1.Problem {
	detail := &quoratev1.Problem{Reason: quota.Invalid.String(), NotApplied: true}
	if len(v.GetViolations()) > 0 {
		detail.Field = protovalidate.FieldPathString(v.GetViolations()[0].GetField())
	}
	return detail
}
