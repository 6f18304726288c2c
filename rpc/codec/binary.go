package codec

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/rpc/wirelimit"
)

// binaryCodec reads and writes protobuf's binary form, and reads no message that passes the bounds of its schema.
//
// Messages of frequent calls have generated code (proto/buf.gen.fast.yaml), which takes a half to a third of the time
// of reflection. It is used where it cannot make a difference: for requests that the scan found plain, and that it
// decodes without an error. Everything else goes to the standard decoder, with its errors.
type binaryCodec struct{ elements *wirelimit.Checker }

func (c binaryCodec) Name() string { return "proto" }

func (c binaryCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

type generatedEncoder interface {
	SizeVT() int
	MarshalToSizedBufferVT(to []byte) (int, error)
}

// generatedDecoder is a message with a generated decoder, which merges what it reads into the message.
type generatedDecoder interface{ UnmarshalVT(data []byte) error }

// MarshalAppend encodes answers into existing buffers.
func (c binaryCodec) MarshalAppend(to []byte, message any) ([]byte, error) {
	if generated, ok := message.(generatedEncoder); ok {
		size := generated.SizeVT()
		to = slices.Grow(to, size)
		end := len(to) + size
		if _, err := generated.MarshalToSizedBufferVT(to[len(to):end]); err != nil {
			return nil, err
		}
		return to[:end], nil
	}
	typed, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", message)
	}
	return proto.MarshalOptions{}.MarshalAppend(to, typed)
}

func (c binaryCodec) Unmarshal(data []byte, message any) error {
	typed, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	usage, err := c.elements.Binary(data, typed.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	if generated, ok := message.(generatedDecoder); ok && usage.Plain {
		proto.Reset(typed)
		if generated.UnmarshalVT(data) == nil {
			return nil
		}
	}
	return shortError(proto.Unmarshal(data, typed))
}
