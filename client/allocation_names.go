package client

import (
	"context"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// allocationsWithIDs adds an id before an allocation is first requested, and the namespace of the client to requests
// that name an id without one. The answer has both. It does not change the caller's message.
type allocationsWithIDs struct {
	quoratev1connect.AllocationServiceClient

	namespace string // empty for that of the caller
}

func (c *allocationsWithIDs) Allocate(
	ctx context.Context, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	return c.AllocationServiceClient.Allocate(ctx, withID(withNamespace(request, c.namespace)))
}

func (c *allocationsWithIDs) BatchAllocate(
	ctx context.Context, request *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	batch := &quoratev1.BatchAllocateRequest{}
	for _, r := range request.GetRequests() {
		batch.Requests = append(batch.Requests, withID(withNamespace(r, c.namespace)))
	}
	return c.AllocationServiceClient.BatchAllocate(ctx, batch)
}

func (c *allocationsWithIDs) BatchRenew(
	ctx context.Context, request *quoratev1.BatchRenewRequest,
) (*quoratev1.BatchRenewResponse, error) {
	batch := &quoratev1.BatchRenewRequest{}
	for _, r := range request.GetRenewals() {
		batch.Renewals = append(batch.Renewals, withNamespace(r, c.namespace))
	}
	return c.AllocationServiceClient.BatchRenew(ctx, batch)
}

func (c *allocationsWithIDs) BatchRelease(
	ctx context.Context, request *quoratev1.BatchReleaseRequest,
) (*quoratev1.BatchReleaseResponse, error) {
	batch := &quoratev1.BatchReleaseRequest{}
	for _, r := range request.GetRequests() {
		batch.Requests = append(batch.Requests, withNamespace(r, c.namespace))
	}
	return c.AllocationServiceClient.BatchRelease(ctx, batch)
}

// Explain adds an id to a request because every request needs one, although nothing is held under it.
func (c *allocationsWithIDs) Explain(
	ctx context.Context, request *quoratev1.ExplainRequest,
) (*quoratev1.ExplainResponse, error) {
	request = withNamespace(request, c.namespace)
	if hypothetical := request.GetRequest(); hypothetical != nil {
		request = proto.CloneOf(request)
		request.Question = &quoratev1.ExplainRequest_Request{
			Request: withID(withNamespace(hypothetical, c.namespace)),
		}
	}
	return c.AllocationServiceClient.Explain(ctx, request)
}

func (c *allocationsWithIDs) Renew(
	ctx context.Context, request *quoratev1.RenewRequest,
) (*quoratev1.RenewResponse, error) {
	return c.AllocationServiceClient.Renew(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Release(
	ctx context.Context, request *quoratev1.ReleaseRequest,
) (*quoratev1.ReleaseResponse, error) {
	return c.AllocationServiceClient.Release(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Confirm(
	ctx context.Context, request *quoratev1.ConfirmRequest,
) (*quoratev1.ConfirmResponse, error) {
	return c.AllocationServiceClient.Confirm(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Cancel(
	ctx context.Context, request *quoratev1.CancelRequest,
) (*quoratev1.CancelResponse, error) {
	return c.AllocationServiceClient.Cancel(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Resize(
	ctx context.Context, request *quoratev1.ResizeRequest,
) (*quoratev1.ResizeResponse, error) {
	return c.AllocationServiceClient.Resize(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Transfer(
	ctx context.Context, request *quoratev1.TransferRequest,
) (*quoratev1.TransferResponse, error) {
	return c.AllocationServiceClient.Transfer(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) Split(
	ctx context.Context, request *quoratev1.SplitRequest,
) (*quoratev1.SplitResponse, error) {
	return c.AllocationServiceClient.Split(ctx, withNamespace(request, c.namespace))
}

func (c *allocationsWithIDs) GetAllocation(
	ctx context.Context, request *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	return c.AllocationServiceClient.GetAllocation(ctx, withNamespace(request, c.namespace))
}

// eventsWithNamespace adds the namespace of the client to requests that name an id without one.
type eventsWithNamespace struct {
	quoratev1connect.EventServiceClient

	namespace string // empty for that of the caller
}

func (c *eventsWithNamespace) ListEvents(
	ctx context.Context, request *quoratev1.ListEventsRequest,
) (*quoratev1.ListEventsResponse, error) {
	if request.GetId() != "" {
		request = withNamespace(request, c.namespace)
	}
	return c.EventServiceClient.ListEvents(ctx, request)
}

func (c *eventsWithNamespace) WatchEvents(
	ctx context.Context, request *quoratev1.WatchEventsRequest,
) (*connect.ServerStreamForClient[quoratev1.WatchEventsResponse], error) {
	if c.namespace != "" && len(request.GetAllocations()) > 0 {
		request = proto.CloneOf(request)
		for i, a := range request.GetAllocations() {
			request.Allocations[i] = withNamespace(a, c.namespace)
		}
	}
	return c.EventServiceClient.WatchEvents(ctx, request)
}

func withID(request *quoratev1.AllocateRequest) *quoratev1.AllocateRequest {
	if request.GetId() != "" {
		return request
	}
	request = proto.CloneOf(request)
	request.Id = uuid.NewString()
	return request
}

func withNamespace[M interface {
	proto.Message
	GetNamespace() string
}](request M, namespace string) M {
	if namespace == "" || request.GetNamespace() != "" {
		return request
	}
	request = proto.CloneOf(request)
	content := request.ProtoReflect()
	content.Set(content.Descriptor().Fields().ByName("namespace"), protoreflect.ValueOfString(namespace))
	return request
}
