package main_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/procedures"
)

func methodNamed(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	service, method, _ := strings.Cut(name, "/")
	for _, file := range procedures.PublicFiles() {
		if s := file.Services().ByName(protoreflect.Name(service)); s != nil {
			if m := s.Methods().ByName(protoreflect.Name(method)); m != nil {
				return m
			}
		}
	}
	t.Fatalf("there is no method %s", name)
	return nil
}

func (r matrixRun) send(
	ctx context.Context, transport *http.Transport, method protoreflect.MethodDescriptor, request *dynamicpb.Message,
	token string,
) (*dynamicpb.Message, error) {
	url := r.server.baseURL() + "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	c := connect.NewClient[dynamicpb.Message, dynamicpb.Message](&http.Client{Transport: transport}, url, r.protocol,
		connect.WithSchema(method), connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
			*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(method.Output())
			return nil
		}))
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	switch {
	case method.IsStreamingClient() && method.IsStreamingServer():
		return sendStream(c.CallBidiStream(ctx), header, request)
	case method.IsStreamingClient():
		stream := c.CallClientStream(ctx)
		copyHeader(stream.RequestHeader(), header)
		_ = stream.Send(request) // what is wrong is in the answer
		answer, err := stream.CloseAndReceive()
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	case method.IsStreamingServer():
		return receiveFirst(ctx, c, header, request)
	}
	sent := connect.NewRequest(request)
	copyHeader(sent.Header(), header)
	answer, err := c.CallUnary(ctx, sent)
	if err != nil {
		return nil, err
	}
	return answer.Msg, failureIn(answer.Msg)
}

// sendStream sends a request over a stream of both directions and takes the first answer.
func sendStream(
	s *connect.BidiStreamForClient[dynamicpb.Message, dynamicpb.Message], header http.Header, request *dynamicpb.Message,
) (*dynamicpb.Message, error) {
	copyHeader(s.RequestHeader(), header)
	_ = s.Send(request) // what is wrong is in the answer
	answer, err := s.Receive()
	_ = s.CloseRequest()
	_ = s.CloseResponse()
	if err != nil {
		return nil, err
	}
	return answer, failureIn(answer)
}

// receiveFirst takes the first answer of a stream, which is a heartbeat if there is nothing to tell.
func receiveFirst(
	ctx context.Context, c *connect.Client[dynamicpb.Message, dynamicpb.Message], header http.Header,
	request *dynamicpb.Message,
) (*dynamicpb.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := connect.NewRequest(request)
	copyHeader(sent.Header(), header)
	stream, err := c.CallServerStream(ctx, sent)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // reading only
	if !stream.Receive() {
		return nil, stream.Err()
	}
	for _, name := range []protoreflect.Name{"change", "trees"} {
		if news := stream.Msg().Descriptor().Fields().ByName(name); news != nil && !stream.Msg().Has(news) {
			return nil, nil //nolint:nilnil // a heartbeat, or nothing about a tree
		}
	}
	return stream.Msg(), nil
}

func isEmpty(answer *dynamicpb.Message) bool {
	if answer == nil {
		return true
	}
	empty := true
	answer.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		switch field.Name() {
		case "read", "revision", "filtered": // how fresh it is, and that it has only what the caller may see
		default:
			empty = false
		}
		return empty
	})
	return empty
}

// failureIn is the first failure of an answer with several outcomes, or of one on a stream.
func failureIn(answer *dynamicpb.Message) error {
	data, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	var failure *quoratev1.Failure
	switch answer.Descriptor().Name() {
	case "AllocateStreamResponse":
		var m quoratev1.AllocateStreamResponse
		err = proto.Unmarshal(data, &m)
		failure = m.GetFailure()
	case "BatchAllocateResponse":
		var m quoratev1.BatchAllocateResponse
		err = proto.Unmarshal(data, &m)
		failure = m.GetOutcomes()[0].GetFailure()
	case "BatchReleaseResponse":
		var m quoratev1.BatchReleaseResponse
		err = proto.Unmarshal(data, &m)
		failure = m.GetOutcomes()[0].GetFailure()
	case "BatchRenewResponse":
		var m quoratev1.BatchRenewResponse
		err = proto.Unmarshal(data, &m)
		failure = m.GetOutcomes()[0].GetFailure()
	}
	if err != nil || failure == nil {
		return err
	}
	return connect.NewError(codeNamed(failure.GetCode()), errors.New(failure.GetMessage()))
}

func codeNamed(name string) connect.Code {
	var code connect.Code
	if err := code.UnmarshalText([]byte(name)); err != nil {
		return connect.CodeUnknown
	}
	return code
}

func codeOf(err error) connect.Code {
	if err == nil {
		return 0
	}
	return connect.CodeOf(err)
}

func copyHeader(to, from http.Header) { maps.Copy(to, from) }
