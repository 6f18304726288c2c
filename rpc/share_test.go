package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/relay"
)

// clientFrom uses a source address in 127.0.0.0/8.
func clientFrom(t *testing.T, address string) *http.Client {
	t.Helper()
	transport := relay.NewPeerTransport(relay.TransportConfig{Silence: longSilence})
	transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// announce sends the headers of calls but never their bodies, and returns a function that waits for the answers.
func announce(t *testing.T, client *http.Client, url, kind string, count int) (ended chan string) {
	t.Helper()
	ended = make(chan string, count)
	for range count {
		silent, _ := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, silent)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = codec.MaxBody
		request.Header.Set("Content-Type", kind)
		go func() {
			answer, err := client.Do(request)
			if err != nil {
				ended <- err.Error()
				return
			}
			defer func() { _ = answer.Body.Close() }()
			content, err := io.ReadAll(answer.Body)
			ended <- fmt.Sprint(answer.StatusCode, " ", string(content), " ", err)
		}()
	}
	return ended
}

// TestAnnouncedBodiesTakeNothing: a body that is announced but not sent does not count against the limit of others, and
// its call is ended.
func TestAnnouncedBodiesTakeNothing(t *testing.T) {
	t.Parallel()
	const share = 48
	t.Run("while it may come", func(t *testing.T) { takeNothing(t, share) })
	d := limited(t, admission.Limits{Calls: 64})
	d.admission.Pacing = admission.Pacing{BodyGrace: time.Second, BusyBodyGrace: time.Second / 2}
	ended := announce(t, clientFrom(t, "127.0.0.2"), d.url+allocatePath, "application/json", 200)
	slow := 0
	for range 200 {
		switch answer := <-ended; {
		case isOverShare(answer):
		case strings.Contains(answer, "too slowly") && strings.Contains(answer, `"notApplied":true`):
			slow++
		default:
			t.Errorf("answered %s", answer)
		}
	}
	if slow < share {
		t.Errorf("%d were cut off, want %d at least", slow, share)
	}
	eventually(t, "all places are free", func() bool { return d.admission.Limiters.Clients.Calls.InUse.Load() == 0 })
}

func isOverShare(answer string) bool {
	return strings.Contains(answer, "127.0.0.2 has ") && strings.Contains(answer, "max-calls")
}

// takeNothing has bodies that are announced, and for which the server waits.
func takeNothing(t *testing.T, share int64) {
	t.Helper()
	d := limited(t, admission.Limits{Calls: 64})
	d.admission.Pacing = admission.Pacing{BodyGrace: time.Hour, BusyBodyGrace: time.Hour}
	ended := announce(t, clientFrom(t, "127.0.0.2"), d.url+allocatePath, "application/json", 200)
	for range 200 - share {
		if answer := <-ended; !isOverShare(answer) {
			t.Errorf("answered %s", answer)
		}
	}
	eventually(t, "the silent caller has its share",
		func() bool { return d.admission.Limiters.Clients.Calls.InUse.Load() == share })
	if n := d.admission.Limiters.Clients.LargeBodies.InUse.Load() +
		d.admission.Limiters.Clients.SmallBodies.InUse.Load(); n != 0 {
		t.Errorf("%d bytes are charged, and none has come", n)
	}
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern", 1)); err != nil {
		t.Errorf("another caller: %v", err)
	}
}

// TestSlowBodies: bodies must arrive at a minimum rate, in every protocol and on every listener.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	d.admission.Pacing = admission.Pacing{BodyGrace: 300 * time.Millisecond, BusyBodyGrace: 300 * time.Millisecond}
	front := http.NewServeMux()
	front.Handle("/", d.FrontEnd(FrontEnd{Name: "test", New: func(Services) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprintln(w, n, err)
		})
	}}))
	server := &http.Server{Handler: front, ReadHeaderTimeout: time.Minute}
	d.admission.LimitConnections(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for name, url := range map[string]string{
		"API":       d.url + allocatePath,
		"front end": "http://" + listener.Addr().String() + "/x",
	} {
		for _, version := range []string{"1", "2"} {
			if name != "API" && version == "2" {
				continue
			}
			client := http.DefaultClient
			if version == "2" {
				client = overHTTP2
			}
			t.Run(name+" by HTTP/"+version, func(t *testing.T) {
				if answer := <-announce(t, client, url, "application/json",
					1); !strings.Contains(answer, "too slowly") {
					t.Errorf("silence is answered %s", answer)
				}
				answer := sendDrops(t, client, url)
				content, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if !strings.Contains(string(content), "too slowly") {
					t.Errorf("drops are answered %d %s", answer.StatusCode, content)
				}
			})
		}
	}
}

// sendDrops sends a byte now and then until the server answers. Over HTTP/1.1 a byte that reaches the closed connection
// resets it, and the answer can be lost on the way: then it asks again.
func sendDrops(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	for {
		from, to := io.Pipe()
		go func() {
			for {
				if _, err := to.Write([]byte(" ")); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, from)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		_ = from.Close()
		switch {
		case err == nil:
			return answer
		case !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE):
			t.Fatal(err)
		}
	}
}

// TestFrontEndBodies: a complete body reaches the front end, and reading one that is too large fails there.
func TestFrontEndBodies(t *testing.T) {
	d := oneNode(t)
	handler := d.FrontEnd(FrontEnd{Name: "test", New: func(Services) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(w, n, " ", err)
		})
	}})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	d.admission.LimitConnections(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for size, want := range map[int]string{
		0: "0 <nil>", 10: "10 <nil>", admission.SmallBody + 1: fmt.Sprint(admission.SmallBody+1, " <nil>"),
		codec.MaxBody:     fmt.Sprint(codec.MaxBody, " <nil>"),
		codec.MaxBody + 1: "http: request body too large",
	} {
		if got := send(t, "POST", "http://"+listener.Addr().String(),
			strings.Repeat("x", size)); !strings.HasSuffix(got.body, want) {
			t.Errorf("%d bytes: %v, want %s", size, got, want)
		}
	}
	eventually(t, "all bytes are given back", func() bool {
		return d.admission.Limiters.Clients.SmallBodies.InUse.Load() == 0 &&
			d.admission.Limiters.Clients.LargeBodies.InUse.Load() == 0
	})
}

// TestUnpackedBytesCount: the decompressed size of bodies counts against the total limit of bodies.
func TestUnpackedBytesCount(t *testing.T) {
	d := oneNode(t)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(strings.Repeat(" ", 3<<20) + "{}")); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	large := d.admission.Limiters.Clients.LargeBodies
	if err := large.TryAcquire(nil, admission.MaxLargeBodies-(2<<20)); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string][]string{
		"connect":  {"Content-Encoding", "gzip"},
		"grpc-web": {"Content-Type", "application/grpc-web+json", "Grpc-Encoding", "gzip"},
	} {
		body := packed.String()
		if name != "connect" {
			body = "\x01" + string([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}) + body
		}
		got := send(t, "POST", d.url+allocatePath, body, header...)
		if text := got.body + got.header.Get("Grpc-Message"); !strings.Contains(text, "beyond 64 KiB") {
			t.Errorf("%s: got %v", name, got)
		}
	}
	got := send(t, "GET", d.url+usagePath+"?encoding=json&compression=gzip&base64=1&message=H4sI", "")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "beyond 64 KiB") {
		t.Errorf("a packed query got %v", got)
	}
	large.Release(nil, admission.MaxLargeBodies-(2<<20))
	eventually(t, "nothing is charged", func() bool { return large.InUse.Load() == 0 })
	if got := send(t, "POST", d.url+allocatePath, packed.String(), "Content-Encoding",
		"gzip"); !strings.Contains(got.body, "id") || got.status != 400 {
		t.Errorf("with room it got %v", got)
	}
	if got := send(t, "POST", d.url+allocatePath, "this is not gzip", "Content-Encoding", "gzip"); got.status != 400 ||
		!strings.Contains(got.body, "gzip: invalid header") {
		t.Errorf("what is not packed got %v", got)
	}
}

// TestUnknownPathsTakeNoPlace: unknown paths are answered with 404 even when all places are taken.
func TestUnknownPathsTakeNoPlace(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 1, Streams: 1})
	if err := d.admission.Limiters.Clients.Calls.TryAcquire(nil, 1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/nothing", "/quorate.v1.AllocationService/Alocate",
		"/quorate.v1.AllocationService/", "/",
	} {
		if got := send(t, "POST", d.url+path, "{}"); got.status != http.StatusNotFound {
			t.Errorf("%s: %v", path, got)
		}
	}
	d.admission.Limiters.Clients.Calls.Release(nil, 1)
}

// TestReflectionIsForTools: reflection streams have a small limit of their own.
func TestReflectionIsForTools(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 1, Streams: 1})
	d.admission.Pacing.Tool = time.Hour // none ends while the others are opened
	attacker := grpcreflect.NewClient(clientFrom(t, "127.0.0.2"), d.url, connect.WithGRPC())
	var streams []*grpcreflect.ClientStream
	for range 2 * admission.MaxReflection {
		streams = append(streams, attacker.NewStream(t.Context()))
	}
	asked := 0
	for _, stream := range streams {
		if _, err := stream.ListServices(); err == nil {
			asked++
		} else {
			if !strings.Contains(err.Error(), "127.0.0.2 has ") {
				t.Fatalf("a stream beyond the share: %v", err)
			}
		}
	}
	if asked == 0 || asked > admission.MaxReflection*3/4+1 {
		t.Errorf("one caller has %d streams of %d", asked, admission.MaxReflection)
	}
	if _, err := grpcreflect.NewClient(overHTTP2, d.url,
		connect.WithGRPC()).NewStream(t.Context()).ListServices(); err != nil {
		t.Errorf("another caller: %v", err)
	}
	if d.admission.Limiters.Clients.Calls.InUse.Load() != 0 || d.admission.Limiters.Clients.Streams.InUse.Load() != 0 {
		t.Error("reflection takes places of calls")
	}
	for _, stream := range streams {
		_, _ = stream.Close() // those that were refused have ended
	}
}

// TestSilentReflectionStreamsEnd: an idle tool takes a place only for a while.
func TestSilentReflectionStreamsEnd(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 1, Streams: 1})
	d.admission.Pacing.Tool = time.Second
	opened := time.Now()
	stream := grpcreflect.NewClient(overHTTP2, d.url, connect.WithGRPC()).NewStream(t.Context())
	_, _ = stream.ListServices() // on a busy machine it has ended by then
	eventually(t, "the silent stream has ended", func() bool { return d.admission.Limiters.Reflection.InUse.Load() == 0 })
	if time.Since(opened) >= time.Minute {
		t.Error("only the end of every stream of tools, after a minute, has ended it")
	}
	if _, err := stream.ListServices(); err == nil {
		t.Error("the stream goes on")
	}
}

// TestOneHostDoesNotTakeAllConnections: one host gets only its share of connections, streams and expensive reads.
func TestOneHostDoesNotTakeAllConnections(t *testing.T) {
	d := limited(t, admission.Limits{Connections: 16})
	overHTTP2.CloseIdleConnections()
	eventually(t, "all connections are closed", func() bool { return d.admission.Limiters.Callers.ConnectionCount() == 0 })
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	for range 12 + admission.ExtraConnections + 20 {
		c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	eventually(t, "the host has its share and a few more",
		func() bool { return d.admission.Limiters.Callers.ConnectionCount() == 12+admission.ExtraConnections })
	if _, err := d.trees().ListTrees(t.Context(), &quoratev1.ListTreesRequest{}); err != nil {
		t.Errorf("another host: %v", err)
	}
	if known := d.admission.Limiters.Callers.CallerCount(); known != 2 {
		t.Errorf("%d callers are known", known)
	}
}

// TestExpensiveReadsHaveShares: the expensive reads of one caller do not block those of others.
func TestExpensiveReadsHaveShares(t *testing.T) {
	d := oneNode(t)
	goOn := make(chan struct{})
	d.node.reading = func(context.Context) error { <-goOn; return nil }
	explain := func(client *http.Client) error {
		_, err := quoratev1connect.NewAllocationServiceClient(client, d.url).Explain(t.Context(),
			&quoratev1.ExplainRequest{
				Question: &quoratev1.ExplainRequest_Request{Request: request("x", "cern", 1)},
			})
		return err
	}
	greedy, ended := clientFrom(t, "127.0.0.2"), make(chan error, admission.MaxExpensive)
	for range admission.MaxExpensive {
		go func() { ended <- explain(greedy) }()
	}
	for range admission.MaxExpensive / 4 {
		wantOverloaded(t, <-ended, "all such reads together")
	}
	other := make(chan error)
	go func() { other <- explain(overHTTP2) }()
	eventually(t, "another caller reads", func() bool {
		return d.admission.Limiters.Expensive.InUse.Load() == admission.MaxExpensive*3/4+1
	})
	close(goOn)
	if err := <-other; err != nil {
		t.Errorf("another caller: %v", err)
	}
	for range admission.MaxExpensive * 3 / 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := d.admission.Limiters.Expensive.InUse.Load(); n != 0 {
		t.Errorf("%d are still inside", n)
	}
}

// TestMembersAndClientsHavePlacesOfTheirOwn: relayed calls of members are admitted when clients have taken all client
// places.
func TestMembersAndClientsHavePlacesOfTheirOwn(t *testing.T) {
	c := newFakeCluster()
	leader, follower := openWith(t, c, "n1", admission.Limits{Calls: 2}), openWith(t, c, "n2", admission.Limits{})
	c.lead("n1")
	leader.applyCERN(t)
	eventually(t, "no call is running", func() bool { return leader.admission.Limiters.Clients.Calls.InUse.Load() == 0 })
	if err := leader.admission.Limiters.Clients.Calls.TryAcquire(nil, 2); err != nil {
		t.Fatal(err)
	}
	_, err := leader.allocations().Allocate(t.Context(), request("a", "cern", 1))
	wantOverloaded(t, err, "max-calls")
	if _, err := follower.allocations().Allocate(t.Context(), request("b", "cern", 1)); err != nil {
		t.Errorf("a relayed call: %v", err)
	}
}

// TestMembersHaveShares: a member that relays very many calls does not block those of another.
func TestMembersHaveShares(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 4})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.nodes.Serve(listener) }()
	goOn := make(chan struct{})
	d.node.proposing = func(context.Context) error { <-goOn; return nil }
	url, ended := "http://"+listener.Addr().String(), make(chan error, 5)
	relay := func(client *http.Client, id string) {
		_, err := quoratev1connect.NewAllocationServiceClient(client, url).Allocate(t.Context(), request(id, "cern", 1))
		ended <- err
	}
	greedy := clientFrom(t, "127.0.0.2")
	for i := range 4 {
		go relay(greedy, fmt.Sprint("greedy-", i))
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(),
		"the node at 127.0.0.2 has 3 of the 4 calls that other members relay") {
		t.Errorf("what is beyond the share: %v", err)
	}
	go relay(clientFrom(t, "127.0.0.3"), "other")
	eventually(t, "another member has a place",
		func() bool { return d.admission.Limiters.Members.Calls.InUse.Load() == 4 })
	close(goOn)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := d.admission.Limiters.Callers.ConnectionCount(); n > 1 { // the place of this test's first call
		t.Errorf("%d connections count as those of clients", n)
	}
}

// TestUnreadBodies: if a body is announced to a handler that does not read it, the connection is closed when the body
// does not arrive.
func TestUnreadBodies(t *testing.T) {
	d := oneNode(t)
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/nothing"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n",
				path); err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}
