// Package codec decodes requests within bounds, and encodes answers.
//
// [Options] are the encodings of all handlers. [Scan] counts the elements of an encoded request before anything is
// built from it; package wirelimit does the counting.
package codec

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/rpc/wire"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// Options have handlers read and write all encodings within the bounds of the API.
func Options(elements *wirelimit.Checker) []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(binaryCodec{elements}),
		connect.WithCodec(jsonCodec{"json", elements}),
		connect.WithCodec(jsonCodec{"json; charset=utf-8", elements}),
		connect.WithCompression("gzip", newDecompressor, newCompressor),
		connect.WithCompressMinBytes(1024),
		connect.WithReadMaxBytes(MaxBody),
	}
}

// jsonCodec decodes and encodes JSON for people: an unknown field is an error that names it, so that a typo is never
// silently ignored, and answers include fields that are zero.
type jsonCodec struct {
	name     string
	elements *wirelimit.Checker
}

func (c jsonCodec) Name() string { return c.name }

// Marshal writes without the random space that protojson adds on purpose, so that equal answers are equal bytes.
func (c jsonCodec) Marshal(message any) ([]byte, error) {
	typed, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", message)
	}
	spaced, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(typed)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, spaced)
	return compact.Bytes(), err
}

func (c jsonCodec) Unmarshal(data []byte, message any) error {
	typed, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	if len(data) == 0 {
		return errors.New("the body is empty; an empty request is {}")
	}
	if _, err := c.elements.JSON(data, typed.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	return shortError(protojson.UnmarshalOptions{RecursionLimit: maxDepth + 1}.Unmarshal(data, typed))
}

// shortError exists because the error of a decoder quotes its input.
func shortError(err error) error {
	if err == nil || len(err.Error()) <= wire.MaxErrorText {
		return err
	}
	return errors.New(wire.ShortText(err.Error()))
}

// BoundedGzip unpacks at most MaxBody bytes, so that a small body cannot become a large message.
type BoundedGzip struct {
	gzip.Reader

	left int64
}

// Reset begins to unpack another source.
func (b *BoundedGzip) Reset(source io.Reader) error {
	b.left = MaxBody
	return b.Reader.Reset(source)
}

func (b *BoundedGzip) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, tooLargeError("unpacked request")
	}
	return n, err
}

func newDecompressor() connect.Decompressor { return &BoundedGzip{} }

func newCompressor() connect.Compressor { return gzip.NewWriter(io.Discard) }
