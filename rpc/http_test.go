package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

const (
	allocatePath = "/quorate.v1.AllocationService/Allocate"
	usagePath    = "/quorate.v1.TreeService/GetUsage"
	statusPath   = "/quorate.admin.v1.ClusterService/GetStatus"
)

type answer struct {
	status int
	header http.Header
	body   string
}

func send(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

// TestCurl checks the answers to calls over plain HTTP.
func TestCurl(t *testing.T) {
	const higgs = `{"id":"a","claims":[{"tree":"cern","node":"physics/higgs","amounts":{"cores":"8"}}]}`
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"a grant shows zeroes, and numbers as strings": {
			"POST", allocatePath, higgs, 200,
			`"amounts":{"cores":"8"},"placed":"physics/higgs"`,
		},
		"amounts may be numbers": {
			"POST", allocatePath, strings.Replace(higgs, `"8"`, "8", 1),
			200, `"write":{"index":"2","ledgerTimeMs":"2","repetition":false}`,
		},
		"a denial": {
			"POST", allocatePath, strings.Replace(higgs, `"8"`, `"11"`, 1),
			429, `"requested":"11","missing":"1"`,
		},
		"an unknown field": {
			"POST", allocatePath, `{"claimz":"a"}`, 400,
			`unknown field \"claimz\"`,
		},
		"an unknown field of a claim": {
			"POST", allocatePath, `{"id":"a","claims":[{"pool":"cern"}]}`,
			400, `unknown field \"pool\"`,
		},
		"a fraction": {
			"POST", allocatePath, strings.Replace(higgs, `"8"`, "1.5", 1),
			400, "invalid value for int64",
		},
		"an amount beyond 64 bits": {
			"POST", allocatePath,
			strings.Replace(higgs, `"8"`, `"9223372036854775808"`, 1), 400, "invalid value for int64",
		},
		"a word for an amount": {
			"POST", allocatePath,
			strings.Replace(higgs, `"8"`, `"many"`, 1), 400, "invalid value for int64",
		},
		"half a body":    {"POST", allocatePath, higgs[:20], 400, "unexpected"},
		"no body":        {"POST", allocatePath, "", 400, "an empty request is {}"},
		"a write by GET": {"GET", allocatePath, "", 405, ""},
		"an unknown method": {
			"POST",
			"/quorate.v1.AllocationService/Alocate", "{}", 404, "",
		},
		"a read by GET": {
			"GET",
			usagePath + "?encoding=json&message=" + url.QueryEscape(`{"tree":"cern","node":"physics"}`), "", 200,
			`"headroom":"20"`,
		},
		"a read by POST": {
			"POST", usagePath, `{"tree":"cern"}`, 200,
			`"effective":{"amount":"100"}`,
		},
		"status": {"POST", statusPath, "{}", 200, `"leaderId":"n1"`},
		"health": {"POST", "/grpc.health.v1.Health/Check", `{}`, 200, "SERVING"},
		"health of x": {
			"POST", "/grpc.health.v1.Health/Check", `{"service":"x"}`,
			404, "not_found",
		},
		"live":  {"GET", "/livez", "", 200, "ok"},
		"ready": {"GET", "/readyz", "", 200, "ok"},
		"metrics": {
			"GET", "/metrics", "", 200,
			`quorate_rpc_calls_total{outcome="ok",procedure="/quorate.v1.TreeService/ApplyTrees"} 1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, c.method, oneNode(t).url+c.path, c.body)
			if got.status != c.status || !strings.Contains(got.body, c.says) {
				t.Errorf("got %d %s, want %d saying %q", got.status, got.body, c.status, c.says)
			}
		})
	}
}

func TestAnswersAreNotCached(t *testing.T) {
	d := oneNode(t)
	got := send(t, "GET", d.url+usagePath+"?encoding=json&message="+url.QueryEscape(`{"tree":"cern"}`), "")
	if got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", got.header)
	}
}

// TestProxiesPassStreamsOn: every answer that is a stream tells proxies not to collect it, and no other answer does.
func TestProxiesPassStreamsOn(t *testing.T) {
	d := oneNode(t)
	streams := 0
	for path, known := range d.procedures {
		if known.Kind == procedures.ServesMembers {
			continue
		}
		body, kind, want := "{}", "application/json", ""
		if known.Streams {
			streams++
			// A message that is not JSON ends each stream at once.
			body, kind, want = "\x00\x00\x00\x00\x01!", "application/connect+json", "no"
		}
		got := send(t, "POST", d.url+path, body, "Content-Type", kind)
		if said := got.header.Get("X-Accel-Buffering"); said != want {
			t.Errorf("%s answers %d with X-Accel-Buffering %q, want %q", path, got.status, said, want)
		}
	}
	if streams < 5 {
		t.Errorf("the API has %d streams, and more are known", streams)
	}
}

func TestEqualAnswersAreEqualBytes(t *testing.T) {
	d := oneNode(t)
	first := send(t, "POST", d.url+usagePath, `{"tree":"cern","subtree":true}`)
	for range 5 {
		if again := send(t, "POST", d.url+usagePath, `{"tree":"cern","subtree":true}`); again.body != first.body {
			t.Fatalf("%s and %s", first.body, again.body)
		}
	}
}

func TestNotReady(t *testing.T) {
	d := oneNode(t)
	d.node.unready = wire.NoLeaderError()
	if got := send(t, "GET", d.url+"/readyz", ""); got.status != 503 || !strings.Contains(got.body, "no leader") {
		t.Errorf("got %v", got)
	}
	if got := send(t, "POST", d.url+"/grpc.health.v1.Health/Check", "{}"); !strings.Contains(got.body, "NOT_SERVING") {
		t.Errorf("got %v", got)
	}
	d.node.unready = nil
	d.Drain()
	if got := send(t, "GET", d.url+"/readyz", ""); got.status != 503 || !strings.Contains(got.body, "shutting down") {
		t.Errorf("got %v", got)
	}
}

func TestOversizedBodies(t *testing.T) {
	large := `{"id":"` + strings.Repeat("x", codec.MaxBody+100) + `"}`
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(large)); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body   io.Reader
		header []string
	}{
		"declared":  {strings.NewReader(large), nil},
		"streamed":  {io.MultiReader(strings.NewReader(large)), nil},
		"gzip bomb": {&packed, []string{"Content-Encoding", "gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := oneNode(t)
			request, err := http.NewRequestWithContext(t.Context(), "POST", d.url+allocatePath, c.body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			if c.header != nil {
				request.Header.Set(c.header[0], c.header[1])
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			var body struct{ Code, Message string }
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != 400 || body.Code != "invalid_argument" ||
				!strings.Contains(body.Message, "larger than 4194304 bytes") {
				t.Errorf("got %d %v", response.StatusCode, body)
			}
		})
	}
}

func TestOversizedMessagesOfTypedClients(t *testing.T) {
	d := oneNode(t)
	large := request("a", "cern", 1)
	large.Labels = map[string]string{"x": strings.Repeat("x", codec.MaxBody)}
	for name, options := range map[string][]connect.ClientOption{
		"grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
		"grpc gzip": {connect.WithGRPC(), connect.WithSendGzip()},
	} {
		if _, err := d.allocations(options...).Allocate(t.Context(),
			large); connect.CodeOf(err) != connect.CodeInvalidArgument ||
			!strings.Contains(err.Error(), "larger than") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEnvelopeThatPromisesTooMuch(t *testing.T) {
	d := oneNode(t)
	envelope := binary.BigEndian.AppendUint32([]byte{0}, 5<<20)
	got := send(t, "POST", d.url+allocatePath, string(envelope)+"short", "Content-Type", "application/grpc-web+proto")
	if got.header.Get("Grpc-Status") != "3" || !strings.Contains(got.header.Get("Grpc-Message"), "larger than") {
		t.Errorf("got %v", got)
	}
}

func TestReflection(t *testing.T) {
	d := oneNode(t)
	stream := grpcreflect.NewClient(overHTTP2, d.url, connect.WithGRPC()).NewStream(t.Context())
	names, err := stream.ListServices()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"quorate.v1.AllocationService", "quorate.v1.TreeService", "quorate.admin.v1.ClusterService",
		"grpc.health.v1.Health",
	} {
		found := false
		for _, name := range names {
			found = found || string(name) == want
		}
		if !found {
			t.Errorf("reflection does not know %s, only %v", want, names)
		}
	}
	files, err := stream.FileContainingSymbol("quorate.v1.AllocateRequest")
	if err != nil || len(files) == 0 {
		t.Errorf("got %v, %v", files, err)
	}
	if _, err = stream.Close(); err != nil {
		t.Error(err)
	}
}

func TestShutdownEndsStreamsAtOnce(t *testing.T) {
	d := oneNode(t)
	stream := grpcreflect.NewClient(overHTTP2, d.url, connect.WithGRPC()).NewStream(t.Context())
	if _, err := stream.ListServices(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Errorf("an open stream held the shutdown: %v", err)
	}
	if _, err := stream.ListServices(); err == nil {
		t.Error("the stream goes on")
	}
}

func TestShutdownLetsCallsFinish(t *testing.T) {
	d := oneNode(t)
	began, finish := make(chan struct{}), make(chan struct{})
	d.node.proposing = func(context.Context) error {
		close(began)
		<-finish
		return nil
	}
	answered := make(chan error, 1)
	go func() {
		_, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics", 1))
		answered <- err
	}()
	<-began
	down := make(chan error, 1)
	go func() { down <- d.Shutdown(context.Background()) }()
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("a call that was under way: %v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownCancelsWhatDoesNotFinish(t *testing.T) {
	d := oneNode(t)
	began := make(chan struct{})
	d.node.proposing = func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}
	answered := make(chan error, 1)
	go func() {
		_, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics", 1))
		answered <- err
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Shutdown(ctx); err == nil {
		t.Error("a shutdown that had to cut a call says nothing")
	}
	if err := <-answered; err == nil {
		t.Error("the call was answered")
	}
}

func TestPanicIsAnswered(t *testing.T) {
	d := oneNode(t)
	d.node.proposing = func(context.Context) error { panic("boom") }
	for name, options := range protocols {
		if _, err := d.allocations(options...).Allocate(t.Context(),
			request("a", "cern:physics", 1)); connect.CodeOf(err) != connect.CodeInternal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	d.node.proposing = nil
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics", 1)); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

func TestCallersDeadlineReachesTheNode(t *testing.T) {
	d := oneNode(t)
	var deadline, proposed time.Time
	d.node.proposing = func(ctx context.Context) error {
		deadline, _ = ctx.Deadline()
		proposed = time.Now()
		return nil
	}
	for asked, most := range map[string]time.Duration{
		"": admission.DefaultDeadline, "1000": 800 * time.Millisecond, "20000": 20*time.Second - admission.AnswerMargin,
		"999999999": admission.LongestDeadline,
	} {
		header := []string{"X-Nothing", ""}
		if asked != "" {
			header = []string{"Connect-Timeout-Ms", asked}
		}
		var sent time.Time
		for attempt := 0; proposed.Before(sent) || attempt == 0; attempt++ { // a second may be over before it is proposed
			sent = time.Now()
			send(t, "POST", d.url+allocatePath, `{"id":"a","claims":[{"tree":"cern","amounts":{"cores":"1"}}]}`, header...)
		}
		if came := deadline.Add(-most); came.Before(sent) || came.After(proposed) {
			t.Errorf("asked for %q: the node had %v from %v after the call, want %v", asked, deadline.Sub(sent),
				came.Sub(sent), most)
		}
	}
}
