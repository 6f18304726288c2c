package client

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// namedChanges gives every change of configuration a request id before it is first sent. The caller's message stays as
// it is.
type namedChanges struct {
	quoratev1connect.TreeServiceClient
}

func (c *namedChanges) ApplyTrees(
	ctx context.Context, request *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	if request.GetRequestId() == "" {
		request = proto.CloneOf(request)
		request.RequestId = uuid.NewString()
	}
	return c.TreeServiceClient.ApplyTrees(ctx, request)
}

func (c *namedChanges) SetLimits(
	ctx context.Context, request *quoratev1.SetLimitsRequest,
) (*quoratev1.SetLimitsResponse, error) {
	if request.GetRequestId() == "" {
		request = proto.CloneOf(request)
		request.RequestId = uuid.NewString()
	}
	return c.TreeServiceClient.SetLimits(ctx, request)
}

func (c *namedChanges) DeleteTree(
	ctx context.Context, request *quoratev1.DeleteTreeRequest,
) (*quoratev1.DeleteTreeResponse, error) {
	if request.GetRequestId() == "" {
		request = proto.CloneOf(request)
		request.RequestId = uuid.NewString()
	}
	return c.TreeServiceClient.DeleteTree(ctx, request)
}

// namedAllocations gives every allocation an id before it is first asked for. The answer tells it.
type namedAllocations struct {
	quoratev1connect.AllocationServiceClient
}

func (c *namedAllocations) Allocate(
	ctx context.Context, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	return c.AllocationServiceClient.Allocate(ctx, named(request))
}

func (c *namedAllocations) BatchAllocate(
	ctx context.Context, request *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	batch := &quoratev1.BatchAllocateRequest{}
	for _, r := range request.GetRequests() {
		batch.Requests = append(batch.Requests, named(r))
	}
	return c.AllocationServiceClient.BatchAllocate(ctx, batch)
}

func named(request *quoratev1.AllocateRequest) *quoratev1.AllocateRequest {
	if request.GetId() != "" {
		return request
	}
	request = proto.CloneOf(request)
	request.Id = uuid.NewString()
	return request
}
