package admission

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/rpc/codec"
)

// unpackers are those that are not in use.
var unpackers = sync.Pool{New: func() any { return &codec.BoundedGzip{} }}

// unpackBody replaces a packed body by what it holds, and charges for that as it is unpacked: packed bodies are
// small, and what they hold must have a common bound too. What it does not understand is left to the caller's
// protocol, and charged as the largest body.
func unpackBody(r *http.Request, body []byte, charge *bodyCharge) ([]byte, error) {
	switch {
	case r.Method == http.MethodGet:
		return body, chargePackedQuery(r.URL, charge)
	case len(body) == 0:
		return body, nil
	case codec.IsEnveloped(r):
		return unpackEnvelope(r, body, charge)
	}
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
		return body, nil
	case "gzip":
		content, err := inflateCharged(make([]byte, 0, 2*len(body)), body, charge)
		if err != nil {
			return nil, err
		}
		r.Header.Del("Content-Encoding")
		if r.Header.Get("Content-Length") != "" {
			r.Header.Set("Content-Length", strconv.Itoa(len(content)))
		}
		return content, nil
	}
	return body, charge.chargeBytes(codec.MaxBody)
}

func unpackEnvelope(r *http.Request, body []byte, charge *bodyCharge) ([]byte, error) {
	const packed = 1
	if len(body) < codec.Envelope || body[0]&packed == 0 {
		return body, nil
	}
	encoding := r.Header.Get("Grpc-Encoding")
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/connect+") {
		encoding = r.Header.Get("Connect-Content-Encoding")
	}
	message := body[codec.Envelope:]
	if encoding != "gzip" || len(message) == 0 || int(binary.BigEndian.Uint32(body[1:codec.Envelope])) != len(message) {
		return body, charge.chargeBytes(codec.MaxBody)
	}
	content, err := inflateCharged(make([]byte, codec.Envelope, codec.Envelope+2*len(message)), message, charge)
	if err != nil {
		return nil, err
	}
	content[0] = body[0] &^ packed
	binary.BigEndian.PutUint32(content[1:codec.Envelope], uint32(len(content)-codec.Envelope))
	return content, nil
}

// chargePackedQuery only charges for the message of a GET: the caller's protocol unpacks it.
func chargePackedQuery(u *url.URL, charge *bodyCharge) error {
	if !strings.Contains(u.RawQuery, "compression") {
		return nil
	}
	if encoding := u.Query().Get("compression"); encoding == "" || encoding == "identity" {
		return nil
	}
	return charge.chargeBytes(codec.MaxBody)
}

func inflateCharged(to, packed []byte, charge *bodyCharge) ([]byte, error) {
	from, _ := unpackers.Get().(*codec.BoundedGzip)
	defer func() {
		_ = from.Reset(http.NoBody) // it must not keep the body, and there is nothing in none
		unpackers.Put(from)
	}()
	if err := from.Reset(bytes.NewReader(packed)); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("get decompressor: %w", err))
	}
	for {
		if len(to) == cap(to) {
			to = append(to, 0)[:len(to)]
		}
		n, err := from.Read(to[len(to):cap(to)])
		to = to[:len(to)+n]
		if charged := charge.chargeBytes(int64(n)); charged != nil {
			return nil, charged
		}
		var refused *connect.Error
		switch {
		case errors.Is(err, io.EOF):
			return to, nil
		case errors.As(err, &refused):
			return nil, refused
		case err != nil:
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("decompress: %w", err))
		}
	}
}
