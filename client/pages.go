package client

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PageRequest is the request of a list, such as ListAllocationsRequest.
type PageRequest interface {
	proto.Message

	GetPageToken() string
}

// PageResponse is a page of a list, such as ListAllocationsResponse.
type PageResponse interface{ GetNextPageToken() string }

// Pages calls a list until its last page, beginning at the page token of the request, and yields each page, which may
// be empty although others follow. The loop ends after an error. The request is not changed.
//
//	request := &quoratev1.ListAllocationsRequest{Tree: "cern"}
//	for page, err := range client.Pages(ctx, c.Allocations.ListAllocations, request) {
//		if err != nil {
//			return err
//		}
//		use(page.GetAllocations())
//	}
func Pages[Request PageRequest, Response PageResponse](
	ctx context.Context, list func(context.Context, Request) (Response, error), request Request,
) iter.Seq2[Response, error] {
	return func(yield func(Response, error) bool) {
		next := proto.CloneOf(request)
		token := next.ProtoReflect().Descriptor().Fields().ByName("page_token")
		for {
			page, err := list(ctx, next)
			if !yield(page, err) || err != nil || page.GetNextPageToken() == "" {
				return
			}
			next = proto.CloneOf(request) // the list may have kept the previous one
			next.ProtoReflect().Set(token, protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}
