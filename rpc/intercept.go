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

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// handlerOptions are what all our Connect handlers share. Interceptors run in this order.
func handlerOptions(
	validator protovalidate.Validator, elements *wirelimit.Checker, t observe.Traces,
) []connect.HandlerOption {
	return append(codec.Options(elements), connect.WithInterceptors(append(t.HandlerInterceptors(),
		observe.Afterwards(observe.NoteCode),
		observe.Afterwards(identify.TellEnd),
		observe.Afterwards(wire.BoundText),
		observe.Afterwards(nameField),
		validate.NewInterceptor(validate.WithValidator(validator)),
	)...))
}

// newValidator compiles the rules of every request in advance, so that the first call is not slower than the second.
// All servers of a process share it, since compiling the rules takes longer than everything else that a server does to
// begin.
var newValidator = sync.OnceValues(compileRules)

func compileRules() (protovalidate.Validator, error) {
	var requests []proto.Message
	for _, file := range procedures.PublicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				requests = append(requests, dynamicpb.NewMessage(methods.Get(j).Input()))
			}
		}
	}
	rules, err := protovalidate.New(protovalidate.WithMessages(requests...))
	return wire.BoundedValidator{Rules: rules}, err
}

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
