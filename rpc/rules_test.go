package rpc

import (
	"errors"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quorate/quorate/rpc/procedures"
)

// TestRulesOfAllRequestsCompile: servers compile the rules of a request when the first one comes, so a rule that does
// not compile must be found here.
func TestRulesOfAllRequestsCompile(t *testing.T) {
	var requests []proto.Message
	for _, file := range procedures.PublicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				requests = append(requests, dynamicpb.NewMessage(methods.Get(j).Input()))
			}
		}
	}
	rules, err := protovalidate.New(protovalidate.WithMessages(requests...), protovalidate.WithDisableLazy())
	if err != nil || len(requests) < 50 {
		t.Fatalf("%d requests: %v", len(requests), err)
	}
	for _, request := range requests {
		var broken *protovalidate.CompilationError
		if err := rules.Validate(request); errors.As(err, &broken) {
			t.Errorf("%s: %v", request.ProtoReflect().Descriptor().FullName(), err)
		}
	}
}
