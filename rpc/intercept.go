package rpc

import (
	"context"
	"errors"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// handlerOptions are what all our Connect handlers share. Interceptors run in this order.
func handlerOptions(validator protovalidate.Validator) []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(jsonCodec{name: "json"}),
		connect.WithCodec(jsonCodec{name: "json; charset=utf-8"}),
		connect.WithCompression("gzip", newDecompressor, newCompressor),
		connect.WithCompressMinBytes(1024),
		connect.WithReadMaxBytes(MaxBody),
		connect.WithInterceptors(
			connect.UnaryInterceptorFunc(noteCode),
			connect.UnaryInterceptorFunc(nameField),
			validate.NewInterceptor(validate.WithValidator(validator)),
		),
	}
}

// newValidator knows the rules of every request beforehand, so that the first call is not slower than the second.
func newValidator() (protovalidate.Validator, error) {
	var requests []proto.Message
	for _, file := range publicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				requests = append(requests, dynamicpb.NewMessage(methods.Get(j).Input()))
			}
		}
	}
	return protovalidate.New(protovalidate.WithMessages(requests...))
}

// noteCode notes the answer's code for the log and the metrics.
func noteCode(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		note(ctx).code = "ok"
		if err != nil {
			note(ctx).code = connect.CodeOf(err).String()
		}
		return answer, err
	}
}

// nameField gives a request that breaks a rule of its schema the same typed detail as any other refusal.
func nameField(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		var failed *connect.Error
		if errors.As(err, &failed) {
			for _, detail := range failed.Details() {
				value, broken := detail.Value()
				if violations, ok := value.(*validatepb.Violations); broken == nil && ok {
					return answer, withDetail(failed, schemaProblem(violations))
				}
			}
		}
		return answer, err
	}
}

func schemaProblem(v *validatepb.Violations) *quoratev1.Problem {
	detail := &quoratev1.Problem{Reason: quota.Invalid.String(), NotApplied: true}
	if len(v.GetViolations()) > 0 {
		detail.Field = protovalidate.FieldPathString(v.GetViolations()[0].GetField())
	}
	return detail
}
