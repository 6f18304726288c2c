package cli

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/client"
)

// largestPage is the most records that a page of any list may have.
const largestPage = 1000

// pageResponse is a page of a list that can be joined with others.
type pageResponse interface {
	proto.Message
	client.PageResponse
}

// AllPages returns the pages of a list as one answer: their lists joined, and the other fields of the last page.
func AllPages[Request client.PageRequest, Response pageResponse](
	ctx context.Context, list func(context.Context, Request) (Response, error), request Request,
) (Response, error) {
	return FirstPages(ctx, list, request, 0, func(Response) int { return 0 })
}

// FirstPages is AllPages of the first records, at most limit; 0 stands for all. count is the number of records of a
// page.
func FirstPages[Request client.PageRequest, Response pageResponse](
	ctx context.Context, list func(context.Context, Request) (Response, error), request Request, limit int,
	count func(Response) int,
) (Response, error) {
	var all Response
	found, isFirst := 0, true
	sized := func(ctx context.Context, request Request) (Response, error) {
		size := largestPage
		if limit > 0 {
			size = min(limit-found, largestPage)
		}
		fields := request.ProtoReflect().Descriptor().Fields()
		request.ProtoReflect().Set(fields.ByName("page_size"), protoreflect.ValueOfInt32(int32(size)))
		return list(ctx, request)
	}
	for page, err := range client.Pages(ctx, sized, request) {
		if err != nil {
			return all, err
		}
		if found += count(page); isFirst {
			all, isFirst = page, false
		} else {
			joinPage(all, page)
		}
		if limit > 0 && found >= limit {
			break
		}
	}
	return all, nil
}

func joinPage(all, page proto.Message) {
	to, from := all.ProtoReflect(), page.ProtoReflect()
	fields := from.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList():
			for n := range from.Get(field).List().Len() {
				to.Mutable(field).List().Append(from.Get(field).List().Get(n))
			}
		case from.Has(field):
			to.Set(field, from.Get(field))
		default:
			to.Clear(field)
		}
	}
}
