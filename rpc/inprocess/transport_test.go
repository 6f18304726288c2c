package inprocess_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/quorate/quorate/rpc/inprocess"
)

func whole(*http.Request) bool { return true }

func transports(handler http.HandlerFunc) map[string]*inprocess.Transport {
	return map[string]*inprocess.Transport{
		"whole": {Handler: handler, Whole: whole}, "stream": {Handler: handler},
	}
}

func newRequest(t *testing.T, ctx context.Context, body io.Reader) *http.Request { //nolint:revive // t goes first here
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/path?query=1", body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type contextKey struct{}

func TestExchange(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || string(content) != "question" || r.URL.Path != "/path" || r.RequestURI != "/path?query=1" ||
			r.ProtoMajor != 2 {
			t.Errorf("the handler sees %q, %v, %q", content, err, r.RequestURI)
		}
		if r.Context().Value(contextKey{}) != "value" {
			t.Error("the context has lost its values")
		}
		r.Header.Set("Mine", "changed")
		w.Header().Set("Trailer", "Declared")
		w.Header().Set("Before", "yes")
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Late", "too late")
		_, _ = io.WriteString(w, "ans")
		w.(http.Flusher).Flush() //nolint:forcetypeassert // the test is about that
		_, _ = io.WriteString(w, "wer")
		w.Header().Set("Declared", "a")
		w.Header().Set(http.TrailerPrefix+"marked", "b")
	}
	for name, transport := range transports(handler) {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t, context.WithValue(t.Context(), contextKey{}, "value"), strings.NewReader("question"))
			response, err := (&http.Client{Transport: transport}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(response.Body)
			if err != nil || string(content) != "answer" || response.Body.Close() != nil {
				t.Errorf("got %q, %v", content, err)
			}
			if response.StatusCode != http.StatusTeapot || response.Header.Get("Before") != "yes" ||
				response.Header.Get("Late") != "" {
				t.Errorf("got %d and %v", response.StatusCode, response.Header)
			}
			if response.Trailer.Get("Declared") != "a" || response.Trailer.Get("Marked") != "b" {
				t.Errorf("trailers are %v", response.Trailer)
			}
			if r.Header.Get("Mine") != "" {
				t.Error("the handler changed the caller's headers")
			}
		})
	}
}

func TestHandlersThatAnswerNothing(t *testing.T) {
	for name, transport := range transports(func(http.ResponseWriter, *http.Request) {}) {
		r := newRequest(t, t.Context(), nil)
		r.Body = nil
		response, err := transport.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", name, err)
		}
		if content, err := io.ReadAll(response.Body); err != nil || len(content) > 0 || response.Body.Close() != nil {
			t.Errorf("%s: got %q, %v", name, content, err)
		}
	}
}

// TestBackPressure: a handler whose caller does not read blocks when the buffer is full, and everything it wrote
// arrives.
func TestBackPressure(t *testing.T) {
	const size = 1 << 20
	written := make(chan int, 1)
	transport := &inprocess.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sum := 0
		for sum < size {
			n, err := w.Write(bytes.Repeat([]byte("x"), 1<<10))
			if err != nil {
				t.Error(err)
			}
			sum += n
		}
		written <- sum
	})}
	response, err := transport.RoundTrip(newRequest(t, t.Context(), nil))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-written:
		t.Fatal("the handler wrote everything although nothing was read")
	case <-time.After(20 * time.Millisecond):
	}
	content, err := io.ReadAll(response.Body)
	if err != nil || len(content) != size || response.Body.Close() != nil {
		t.Errorf("got %d bytes, %v", len(content), err)
	}
}

// TestClosedAnswers: closing the body cancels the handler, whether it reads, writes or waits.
func TestClosedAnswers(t *testing.T) {
	for name, work := range map[string]func(http.ResponseWriter, *http.Request) error{
		"waits": func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() },
		"writes": func(w http.ResponseWriter, _ *http.Request) error {
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return err
				}
			}
		},
		"reads": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.ReadAll(r.Body)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			transport := &inprocess.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush() //nolint:forcetypeassert // the test is about that
				ended <- work(w, r)
			})}
			body, sends := io.Pipe()
			response, err := transport.RoundTrip(newRequest(t, t.Context(), body))
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil {
				t.Error("the handler went on")
			}
			if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("a closed body is %v", err)
			}
			if _, err := sends.Write([]byte("x")); err == nil {
				t.Error("the request has no reader, and a part of it was taken")
			}
		})
	}
}

// TestCancelledCalls: a cancelled call returns without waiting for the handler.
func TestCancelledCalls(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	transport := &inprocess.Transport{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(began)
		<-release
	})}
	go func() { <-began; cancel() }()
	response, err := transport.RoundTrip(newRequest(t, ctx, nil))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", response, err)
	}
	if response != nil {
		_ = response.Body.Close() // no call may succeed
	}
}

func TestPanics(t *testing.T) {
	handlers := transports(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("the other half")
	})
	response, err := handlers["stream"].RoundTrip(newRequest(t, t.Context(), nil))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if string(content) != "half" || err == nil || !strings.Contains(err.Error(), "the other half") ||
		response.Body.Close() != nil {
		t.Errorf("got %q, %v", content, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the panic of a whole exchange does not reach its caller")
		}
	}()
	_, _ = handlers["whole"].RoundTrip(newRequest(t, t.Context(), nil)) //nolint:bodyclose // it panics
}

// echo returns the messages it receives, in all forms of streams.
func echo() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/unary", connect.NewUnaryHandler("/unary",
		func(_ context.Context, r *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			if r.Header().Get("Fail") != "" {
				return nil, connect.NewError(connect.CodeAborted, errors.New("as you like"))
			}
			return connect.NewResponse(r.Msg), nil
		}))
	mux.Handle("/server", connect.NewServerStreamHandler("/server",
		func(ctx context.Context, _ *connect.Request[emptypb.Empty], s *connect.ServerStream[emptypb.Empty]) error {
			for range 3 {
				if err := s.Send(&emptypb.Empty{}); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}))
	mux.Handle("/client", connect.NewClientStreamHandler("/client",
		func(_ context.Context, s *connect.ClientStream[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			for s.Receive() {
				if s.RequestHeader().Get("Fail") != "" { // before all messages are received
					return nil, connect.NewError(connect.CodeAborted, errors.New("as you like"))
				}
			}
			return connect.NewResponse(&emptypb.Empty{}), s.Err()
		}))
	mux.Handle("/both", connect.NewBidiStreamHandler("/both",
		func(_ context.Context, s *connect.BidiStream[emptypb.Empty, emptypb.Empty]) error {
			for {
				m, err := s.Receive()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := s.Send(m); err != nil {
					return err
				}
			}
		}))
	return mux
}

// TestGeneratedClients runs all forms of streams in all protocols.
func TestGeneratedClients(t *testing.T) {
	transport := &inprocess.Transport{
		Handler: echo(),
		Whole:   func(r *http.Request) bool { return r.URL.Path == "/unary" },
	}
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
	} {
		client := func(path string) *connect.Client[emptypb.Empty, emptypb.Empty] {
			return connect.NewClient[emptypb.Empty, emptypb.Empty](transport, "http://node"+path, options...)
		}
		t.Run(name, func(t *testing.T) {
			if _, err := client("/unary").CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{})); err != nil {
				t.Error(err)
			}
			failing := connect.NewRequest(&emptypb.Empty{})
			failing.Header().Set("Fail", "yes")
			if _, err := client("/unary").CallUnary(t.Context(), failing); connect.CodeOf(err) != connect.CodeAborted {
				t.Error(err)
			}
			if _, err := client("/none").CallUnary(t.Context(),
				connect.NewRequest(&emptypb.Empty{})); connect.CodeOf(err) != connect.CodeUnimplemented {
				t.Error(err)
			}
			serverStream(t, client("/server"))
			clientStream(t, client("/client"))
			bidiStream(t, client("/both"))
		})
	}
}

func serverStream(t *testing.T, c *connect.Client[emptypb.Empty, emptypb.Empty]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.CallServerStream(ctx, connect.NewRequest(&emptypb.Empty{}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
	}
	cancel()
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeCanceled {
		t.Errorf("a cancelled stream ended with %v", stream.Err())
	}
	_ = stream.Close() // the call was cancelled
}

func clientStream(t *testing.T, c *connect.Client[emptypb.Empty, emptypb.Empty]) {
	t.Helper()
	stream := c.CallClientStream(t.Context())
	for range 3 {
		if err := stream.Send(&emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Error(err)
	}
	stream = c.CallClientStream(t.Context())
	stream.RequestHeader().Set("Fail", "yes")
	for range 1000 {
		if err := stream.Send(&emptypb.Empty{}); err != nil {
			break
		}
	}
	if _, err := stream.CloseAndReceive(); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("a refused stream ended with %v", err)
	}
}

func bidiStream(t *testing.T, c *connect.Client[emptypb.Empty, emptypb.Empty]) {
	t.Helper()
	stream := c.CallBidiStream(t.Context())
	for range 3 {
		if err := stream.Send(&emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseRequest(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if err := stream.CloseResponse(); err != nil {
		t.Error(err)
	}
}
