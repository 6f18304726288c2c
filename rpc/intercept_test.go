package rpc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/wire"
)

// TestErrorsFitInEachKindOfCall: over gRPC the errors of unary calls and of streams are bounded; over the other
// protocols, whose errors travel in the body, they are whole.
func TestErrorsFitInEachKindOfCall(t *testing.T) {
	detail := &quoratev1.Problem{Reason: "IN_USE"}
	for range 5000 {
		detail.Breaches = append(detail.Breaches, &quoratev1.Breach{Tree: "cern"})
	}
	failed := wire.NewProblem(connect.CodeFailedPrecondition, strings.Repeat("text; ", 500), detail)
	option := connect.WithInterceptors(fitErrors{})
	mux := http.NewServeMux()
	mux.Handle("/t/Unary", connect.NewUnaryHandlerSimple("/t/Unary",
		func(context.Context, *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
			return nil, failed
		},
		option))
	mux.Handle("/t/Stream", connect.NewServerStreamHandlerSimple("/t/Stream",
		func(context.Context, *quoratev1.GetUsageRequest, *connect.ServerStream[quoratev1.GetUsageResponse]) error {
			return failed
		}, option))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for name, protocol := range map[string][]connect.ClientOption{
		"connect": nil, "grpc-web": {connect.WithGRPCWeb()}, "grpc": {connect.WithGRPC()},
	} {
		call := func(path string) *connect.Client[quoratev1.GetUsageRequest, quoratev1.GetUsageResponse] {
			return connect.NewClient[quoratev1.GetUsageRequest, quoratev1.GetUsageResponse](
				server.Client(), server.URL+path, protocol...)
		}
		_, unary := call("/t/Unary").CallUnary(t.Context(), connect.NewRequest(&quoratev1.GetUsageRequest{}))
		stream, err := call("/t/Stream").CallServerStream(t.Context(), connect.NewRequest(&quoratev1.GetUsageRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() {
			t.Error("a message arrived")
		}
		for kind, err := range map[string]error{"unary": unary, "stream": stream.Err()} {
			problem := problemOf(t, err)
			if problem.GetReason() != "IN_USE" || len(problem.GetBreaches())+int(problem.GetOtherBreaches()) != 5000 ||
				(problem.GetOtherBreaches() > 0) != (name == "grpc") {
				t.Errorf("%s over %s: %s, %d breaches and %d others", kind, name, problem.GetReason(),
					len(problem.GetBreaches()), problem.GetOtherBreaches())
			}
			var answer *connect.Error
			if errors.As(err, &answer) && (len(answer.Message()) <= wire.MaxTrailerText) != (name == "grpc") {
				t.Errorf("%s over %s: a text of %d bytes", kind, name, len(answer.Message()))
			}
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}
