package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/wire"
)

// The exchange of one relayed call, as a reverse proxy makes it: headers of the connection stay behind, all others and
// the trailers of gRPC pass. The body of the request and that of the answer are in memory already, so nothing is copied
// but headers.

// connectionHeaders are for one connection, together with those that a Connection header names.
var connectionHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// browserHeaders stay behind because this node has already checked them, and what other proxies say of the caller
// because nodes do not go by it.
var browserHeaders = []string{
	"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-User",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
}

// relayedRequest leaves out the body.
func relayedRequest(ctx context.Context, r *http.Request, scheme, host string) *http.Request {
	sent := r.WithContext(ctx)
	address := *r.URL
	address.Scheme, address.Host = scheme, host
	sent.URL, sent.Host, sent.RequestURI, sent.Close = &address, "", "", false
	sent.TransferEncoding, sent.Trailer = nil, nil
	sent.Header = r.Header.Clone()
	dropConnectionHeaders(sent.Header)
	for _, name := range browserHeaders {
		delete(sent.Header, name)
	}
	if slices.ContainsFunc(r.Header["Te"], func(te string) bool { return strings.EqualFold(te, "trailers") }) {
		sent.Header.Set("Te", "trailers") // gRPC asks for it
	}
	if caller, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		sent.Header.Set("X-Forwarded-For", caller)
	}
	if _, named := sent.Header["User-Agent"]; !named {
		sent.Header["User-Agent"] = nil // otherwise the transport names itself
	}
	return sent
}

func dropConnectionHeaders(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range connectionHeaders {
		delete(h, name)
	}
}

// ReceiveWhole waits for the end of the answer before the first byte goes to the caller, so that the failure of the
// leader in the middle of it becomes an error in the caller's protocol and not a truncated answer.
func ReceiveWhole(answer *http.Response) error {
	content, err := readAnswer(answer)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if len(content) > MaxAnswer {
		return fmt.Errorf("the answer is larger than %d bytes", MaxAnswer)
	}
	return takeAnswer(answer, content)
}

// takeAnswer gives an answer the content that was received. An answer of a node that does not lead is an error.
func takeAnswer(answer *http.Response, content []byte) error {
	if answer.Header.Get(wire.AskAnotherHeader) != "" || answer.Trailer.Get(wire.AskAnotherHeader) != "" {
		return errNotLeader
	}
	answer.Header.Del(observe.RequestIDHeader) // the caller has it from this node already
	answer.Body = codec.NewReceivedBody(content)
	return nil
}

// trustedLength is the largest announced length for which room is made before the bytes are there.
const trustedLength = 1 << 20

// readAnswer reads at most one byte more than the largest answer.
func readAnswer(answer *http.Response) ([]byte, error) {
	if announced := answer.ContentLength; announced >= 0 && announced <= trustedLength {
		content := make([]byte, announced)
		if _, err := io.ReadFull(answer.Body, content); err != nil {
			return nil, err
		}
		// The end of the body brings the trailers.
		more, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1-announced))
		if len(more) > 0 {
			content = slices.Concat(content, more)
		}
		return content, err
	}
	return io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
}

// writeAnswer takes an answer of ReceiveWhole.
func writeAnswer(w http.ResponseWriter, answer *http.Response) {
	dropConnectionHeaders(answer.Header)
	header := w.Header()
	for name, values := range answer.Header {
		header[name] = append(header[name], values...)
	}
	content, _ := answer.Body.(*codec.ReceivedBody)
	for name := range answer.Trailer {
		header.Add("Trailer", name)
	}
	if len(answer.Trailer) == 0 {
		header.Set("Content-Length", strconv.FormatInt(content.Size(), 10))
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = content.WriteTo(w) // a caller that has gone sees nothing of it
	if len(answer.Trailer) > 0 {
		_ = http.NewResponseController(w).Flush() // otherwise a short answer would go without its trailers
	}
	maps.Copy(header, answer.Trailer)
}
