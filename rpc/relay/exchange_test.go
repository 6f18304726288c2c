package relay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorate/quorate/rpc/codec"
)

// TestHeadersOfARelayedRequest: what is for one connection, and what browsers and proxies say, stays behind.
func TestHeadersOfARelayedRequest(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/quorate.v1.AllocationService/Allocate?a=b", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header = http.Header{
		"Connection": {"keep-alive, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"}, "Te": {"trailers"},
		"Transfer-Encoding": {"chunked"}, "Upgrade": {"h2c"}, "Trailer": {"X"}, "Proxy-Authorization": {"secret"},
		"Origin": {"https://example.org"}, "Sec-Fetch-Site": {"same-origin"}, "X-Forwarded-For": {"198.51.100.7"},
		"Forwarded": {"for=198.51.100.7"}, "Content-Type": {"application/proto"}, "Authorization": {"Bearer token"},
	}
	sent := relayedRequest(t.Context(), r, "http", "n2:1")
	want := map[string]string{
		"Te": "trailers", "X-Forwarded-For": "192.0.2.1", "Content-Type": "application/proto",
		"Authorization": "Bearer token", "User-Agent": "",
	}
	for name := range sent.Header {
		if value, known := want[name]; !known || sent.Header.Get(name) != value {
			t.Errorf("%s: %q", name, sent.Header[name])
		}
	}
	if len(sent.Header) != len(want) {
		t.Errorf("%d headers: %v", len(sent.Header), sent.Header)
	}
	if got := sent.URL.String(); got != "http://n2:1/quorate.v1.AllocationService/Allocate?a=b" || sent.RequestURI != "" {
		t.Errorf("sent to %s, %q", got, sent.RequestURI)
	}
	if r.Header.Get("Origin") == "" || r.URL.Host != "" {
		t.Error("the caller's request has changed")
	}
}

func relayedAnswer(content string, announced int64, trailer http.Header) *http.Response {
	return &http.Response{
		StatusCode: http.StatusTeapot, Header: http.Header{"Vary": {"B"}, "Connection": {"close"}, "X-Request-Id": {"id"}},
		Body: io.NopCloser(strings.NewReader(content)), ContentLength: announced, Trailer: trailer,
	}
}

func TestAnswersPassWhole(t *testing.T) {
	for name, c := range map[string]struct {
		content   string
		announced int64
		trailer   http.Header
	}{
		"of an announced length": {"content", 7, nil},
		"of an unknown length":   {"content", -1, nil},
		"empty":                  {"", 0, nil},
		"with trailers":          {"content", -1, http.Header{"Grpc-Status": {"0"}}},
	} {
		answer := relayedAnswer(c.content, c.announced, c.trailer) //nolint:bodyclose // ReceiveWhole closes it
		if err := ReceiveWhole(answer); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Vary", "A")
		writeAnswer(w, answer)
		got := w.Result()
		if got.StatusCode != http.StatusTeapot || w.Body.String() != c.content ||
			strings.Join(got.Header["Vary"], ",") != "A,B" || got.Header.Get("Connection") != "" ||
			got.Header.Get("X-Request-Id") != "" || got.Trailer.Get("Grpc-Status") != c.trailer.Get("Grpc-Status") {
			t.Errorf("%s: %d %q %v %v", name, got.StatusCode, w.Body, got.Header, got.Trailer)
		}
		if length := got.Header.Get("Content-Length"); (length == "") != (c.trailer != nil) {
			t.Errorf("%s: the length is %q", name, length)
		}
	}
}

// TestAnswersThatBreakOff are lost, whatever length they announce.
func TestAnswersThatBreakOff(t *testing.T) {
	for _, announced := range []int64{8, trustedLength, trustedLength + 1} {
		answer := relayedAnswer("content", announced, nil)
		answer.Body = io.NopCloser(io.MultiReader(answer.Body, brokenReader{}))
		if err := ReceiveWhole(answer); err == nil || notSent(err) {
			t.Errorf("announced %d: %v", announced, err)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReceivedBodiesAreNotCopied(t *testing.T) {
	content := []byte("content")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	if codec.BytesOf(r) != nil {
		t.Error("a body that was not received has content")
	}
	codec.SetBody(r, content)
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	again, err := r.GetBody()
	if err != nil || &codec.BytesOf(r)[0] != &content[0] {
		t.Errorf("the content was copied, %v", err)
	}
	if second, err := io.ReadAll(again); err != nil || string(second) != "content" {
		t.Errorf("read again: %q, %v", second, err)
	}
}
