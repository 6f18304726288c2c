package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// Bounds of a decoded request, beside those of its fields. The largest requests that keep to all bounds of their
// schema, a tree of 20,000 nodes with twenty limits each, take three quarters of either.
const (
	// MaxElements is how many list entries, map entries and messages a request may have.
	MaxElements = 1 << 19
	// MaxDecoded is how much memory a decoded request may take, in bytes, by the estimate of the scan.
	MaxDecoded = 16 * MaxBody
	// maxDepth is how deep a request may be nested; the schema needs less than ten levels.
	maxDepth = 64
)

// NewElementChecker returns a checker with the bounds of the requests of all services of the API.
var NewElementChecker = sync.OnceValues(func() (*wirelimit.Checker, error) {
	var inputs []protoreflect.MessageDescriptor
	for _, file := range append(procedures.PublicFiles(), peerv1.File_quorate_peer_v1_peer_proto) {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				inputs = append(inputs, methods.Get(j).Input())
			}
		}
	}
	return wirelimit.New(wirelimit.Limits{Elements: MaxElements, Size: MaxDecoded, Depth: maxDepth}, inputs...)
})

// Scan measures a call with one request of a type. It finds nothing in what it cannot read, which the handler refuses.
func Scan(checker *wirelimit.Checker, r *http.Request, input protoreflect.MessageDescriptor) (wirelimit.Usage, error) {
	buffer, _ := inflated.Get().(*bytes.Buffer)
	defer inflated.Put(buffer)
	form, found, err := findPlainRequest(r, buffer)
	if err != nil || !found {
		return wirelimit.Usage{}, err
	}
	usage, err := scanEncoded(checker, form, input)
	if err != nil {
		return wirelimit.Usage{}, OverBoundError(err)
	}
	return usage, nil
}

// Decode decodes the one request of a call, which was scanned, without the checks of its schema; false if it cannot be
// decoded, for which the handler has the better error.
func Decode(r *http.Request, input protoreflect.MessageDescriptor) (proto.Message, bool) {
	form, found, err := findPlainRequest(r, new(bytes.Buffer))
	if err != nil || !found {
		return nil, false
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(input.FullName())
	if err != nil {
		return nil, false
	}
	request := kind.New().Interface()
	if form.json {
		err = protojson.UnmarshalOptions{RecursionLimit: maxDepth + 1}.Unmarshal(form.data, request)
	} else {
		err = proto.Unmarshal(form.data, request)
	}
	return request, err == nil
}

// findPlainRequest is findRequest that also unpacks, into a buffer.
func findPlainRequest(r *http.Request, buffer *bytes.Buffer) (form encodedRequest, found bool, err error) {
	if form, found = findRequest(r); !found || !form.packed {
		return form, found, nil
	}
	buffer.Reset()
	found, err = inflateInto(buffer, form.data)
	form.data = buffer.Bytes()
	return form, found, err
}

func scanEncoded(
	c *wirelimit.Checker, f encodedRequest, input protoreflect.MessageDescriptor,
) (wirelimit.Usage, error) {
	switch {
	case !f.json:
		return c.Binary(f.data, input)
	case len(f.data) == 0:
		return wirelimit.Usage{}, nil // the codec explains what an empty request is
	}
	return c.JSON(f.data, input)
}

// OverBoundError is the answer to a request that passes a bound before it is decoded.
func OverBoundError(err error) error {
	refused := &quota.Error{Kind: quota.Invalid, Text: wire.ShortText(err.Error())}
	var over *wirelimit.Error
	if errors.As(err, &over) {
		refused.Field, refused.Text = over.Field, over.Text
	}
	return wire.ToError(refused)
}

type encodedRequest struct {
	data []byte
	// json is true for JSON and false for protobuf's binary form.
	json bool
	// packed is true if data is compressed with gzip, the only coding that the API supports.
	packed bool
}

// inflated has buffers for requests that arrive compressed.
var inflated = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// inflateInto unpacks at most MaxBody bytes, and returns nothing for data that is not gzip.
func inflateInto(into *bytes.Buffer, packed []byte) (found bool, err error) {
	reader := &BoundedGzip{}
	if reader.Reset(bytes.NewReader(packed)) != nil {
		return false, nil //nolint:nilerr // it is not gzip, which the handler says better
	}
	if _, err = into.ReadFrom(reader); err == nil {
		return true, nil
	}
	var tooLarge *connect.Error
	if errors.As(err, &tooLarge) {
		return false, err
	}
	return false, nil
}

// findRequest finds the request in a call of any protocol, and none in a call that the handler will refuse.
func findRequest(r *http.Request) (form encodedRequest, found bool) {
	if r.Method == http.MethodGet {
		return requestInQuery(r)
	}
	media := r.Header.Get("Content-Type")
	if media != "application/proto" { // nothing to parse in the most frequent one
		parsed, _, err := mime.ParseMediaType(media)
		if err != nil {
			return encodedRequest{}, false // the handler refuses it
		}
		media = parsed
	}
	content := BytesOf(r)
	if IsEnveloped(r) {
		_, codec, _ := strings.Cut(media, "+")
		return requestInEnvelope(content, codec == "json")
	}
	packed, known := contentCoding(r.Header.Get("Content-Encoding"))
	return encodedRequest{data: content, json: media == "application/json", packed: packed && len(content) > 0}, known
}

// contentCoding reports whether a content coding is compression, and whether the API supports it.
func contentCoding(name string) (packed, known bool) {
	switch strings.ToLower(name) {
	case "", "identity":
		return false, true
	case "gzip":
		return true, true
	}
	return false, false
}

func requestInEnvelope(content []byte, json bool) (encodedRequest, bool) {
	if len(content) < Envelope {
		return encodedRequest{}, false
	}
	length := int64(binary.BigEndian.Uint32(content[1:Envelope]))
	data := content[Envelope:]
	if length > int64(len(data)) {
		return encodedRequest{}, false
	}
	return encodedRequest{data: data[:length], json: json, packed: content[0]&1 != 0 && length > 0}, true
}

func requestInQuery(r *http.Request) (encodedRequest, bool) {
	query := r.URL.Query()
	data := []byte(query.Get("message"))
	if query.Get("base64") == "1" {
		decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(data), "="))
		if err != nil {
			return encodedRequest{}, false
		}
		data = decoded
	}
	packed, known := contentCoding(query.Get("compression"))
	return encodedRequest{data: data, json: query.Get("encoding") == "json", packed: packed && len(data) > 0}, known
}
