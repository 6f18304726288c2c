package relay

import (
	"net/http"
	"net/textproto"
	"strings"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/rpc/codec"
)

// exchangeStreamed sends a call over the stream to the leader. The error is errStreamFull if the call must be sent on
// its own.
func (f *Forwarder) exchangeStreamed(url string, r *http.Request) (*http.Response, error) {
	body := codec.BytesOf(r)
	streamable := len(body) <= maxStreamedBody && r.ContentLength == int64(len(body)) && r.URL.RawQuery == "" &&
		isForNodes(url)
	if f.Streams == nil || !streamable {
		return nil, errStreamFull
	}
	stream := f.Streams.streamTo(url)
	if stream == nil {
		return nil, errStreamFull
	}
	answer, err := stream.exchange(r.Context(), &peerv1.RelayedCall{
		Path: r.URL.Path, Headers: headersToWire(r.Header), Body: body,
	})
	if err != nil {
		return nil, err
	}
	f.Metrics.Streamed.Inc()
	received := &http.Response{
		StatusCode: int(answer.GetStatus()), Header: HeadersFromWire(answer.GetHeaders()),
		Trailer: HeadersFromWire(answer.GetTrailers()),
	}
	return received, takeAnswer(received, answer.GetBody())
}

func isForNodes(url string) bool { return strings.HasSuffix(url, ":"+NodePort) }

// AnswerToWire converts an answer that is complete. Its body is not copied.
func AnswerToWire(number uint64, answer *http.Response, body []byte) *peerv1.RelayedAnswer {
	return &peerv1.RelayedAnswer{
		Number: number, Status: uint32(answer.StatusCode), Headers: headersToWire(answer.Header), Body: body,
		Trailers: headersToWire(answer.Trailer),
	}
}

// headersToWire writes headers as lines. What came by HTTP has no line feed in it; a value of this node that had one
// would be cut there.
func headersToWire(header http.Header) string {
	var lines strings.Builder
	lines.Grow(64 * len(header))
	for name, values := range header {
		for _, value := range values {
			first, _, _ := strings.Cut(value, "\n")
			lines.WriteString(name)
			lines.WriteString(": ")
			lines.WriteString(first)
			lines.WriteByte('\n')
		}
	}
	return lines.String()
}

// HeadersFromWire reads what headersToWire has written. Lines without a name and a value are left out.
func HeadersFromWire(lines string) http.Header {
	count := strings.Count(lines, "\n")
	header, values := make(http.Header, count), make([]string, 0, count)
	for line := range strings.Lines(lines) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !found || name == "" {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if earlier := header[name]; earlier != nil {
			header[name] = append(earlier, value)
			continue
		}
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return header
}
