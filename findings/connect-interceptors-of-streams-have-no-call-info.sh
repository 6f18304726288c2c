#!/usr/bin/env bash
# One would believe: connect.CallInfoForHandlerContext tells an interceptor of a server the same about each kind of call,
# so one that shapes errors by protocol (gRPC sends them in a trailer, which clients bound) can ask the context.
# What happens (connectrpc.com/connect v1.21.1): in WrapUnary the context has the information. In WrapStreamingHandler
# it has none, for streams of the client, of the server and of both, though the handlers inside find it: it is attached
# after the interceptors have run. An interceptor that treats "not there" as "not gRPC" works in every test with unary
# calls. The Peer of the stream has the protocol.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'END'
module example.com/finding

go 1.25.0

require (
	connectrpc.com/connect v1.21.1
	google.golang.org/protobuf v1.36.11
)
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
)

type empty = emptypb.Empty

type look struct{}

func has(ctx context.Context) bool { _, known := connect.CallInfoForHandlerContext(ctx); return known }

func (look) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		fmt.Printf("%s: interceptor %v", r.Spec().Procedure, has(ctx))
		return next(ctx, r)
	}
}

func (look) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, s connect.StreamingHandlerConn) error {
		fmt.Printf("%s: interceptor %v", s.Spec().Procedure, has(ctx))
		return next(ctx, s)
	}
}

func (look) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc { return next }

func handled(ctx context.Context) { fmt.Printf(", handler %v\n", has(ctx)) }

func main() {
	with := connect.WithInterceptors(look{})
	mux := http.NewServeMux()
	mux.Handle("/t/Unary", connect.NewUnaryHandler("/t/Unary",
		func(ctx context.Context, _ *connect.Request[empty]) (*connect.Response[empty], error) {
			handled(ctx)
			return connect.NewResponse(&empty{}), nil
		}, with))
	mux.Handle("/t/Server", connect.NewServerStreamHandler("/t/Server",
		func(ctx context.Context, _ *connect.Request[empty], _ *connect.ServerStream[empty]) error {
			handled(ctx)
			return nil
		}, with))
	mux.Handle("/t/Client", connect.NewClientStreamHandler("/t/Client",
		func(ctx context.Context, _ *connect.ClientStream[empty]) (*connect.Response[empty], error) {
			handled(ctx)
			return connect.NewResponse(&empty{}), nil
		}, with))
	mux.Handle("/t/Bidi", connect.NewBidiStreamHandler("/t/Bidi",
		func(ctx context.Context, _ *connect.BidiStream[empty, empty]) error {
			handled(ctx)
			return nil
		}, with))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := func(path string) *connect.Client[empty, empty] {
		return connect.NewClient[empty, empty](server.Client(), server.URL+path, connect.WithGRPC())
	}
	ctx := context.Background()
	if _, err := client("/t/Unary").CallUnary(ctx, connect.NewRequest(&empty{})); err != nil {
		panic(err)
	}
	stream, err := client("/t/Server").CallServerStream(ctx, connect.NewRequest(&empty{}))
	if err != nil {
		panic(err)
	}
	for stream.Receive() {
	}
	if _, err := client("/t/Client").CallClientStream(ctx).CloseAndReceive(); err != nil {
		panic(err)
	}
	both := client("/t/Bidi").CallBidiStream(ctx)
	_ = both.CloseRequest()
	_, _ = both.Receive()
}
END
export GOFLAGS=-mod=mod GOWORK=off
seen=$(go run . 2>/dev/null)
echo "$seen"
[ "$seen" = "/t/Unary: interceptor true, handler true
/t/Server: interceptor false, handler true
/t/Client: interceptor false, handler true
/t/Bidi: interceptor false, handler true" ]
echo "as described"
