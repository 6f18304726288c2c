package client

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// treesWithIDs adds a request id before a change of configuration is first sent, and does not change the caller's
// message.
type treesWithIDs struct {
	quoratev1connect.TreeServiceClient
}

func (c *treesWithIDs) ApplyTrees(
	ctx context.Context, request *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	return c.TreeServiceClient.ApplyTrees(ctx, withRequestID(request))
}

func (c *treesWithIDs) SetLimits(
	ctx context.Context, request *quoratev1.SetLimitsRequest,
) (*quoratev1.SetLimitsResponse, error) {
	return c.TreeServiceClient.SetLimits(ctx, withRequestID(request))
}

func (c *treesWithIDs) DeleteTree(
	ctx context.Context, request *quoratev1.DeleteTreeRequest,
) (*quoratev1.DeleteTreeResponse, error) {
	return c.TreeServiceClient.DeleteTree(ctx, withRequestID(request))
}

func (c *treesWithIDs) MoveNode(
	ctx context.Context, request *quoratev1.MoveNodeRequest,
) (*quoratev1.MoveNodeResponse, error) {
	return c.TreeServiceClient.MoveNode(ctx, withRequestID(request))
}

func (c *treesWithIDs) SetMaintenance(
	ctx context.Context, request *quoratev1.SetMaintenanceRequest,
) (*quoratev1.SetMaintenanceResponse, error) {
	return c.TreeServiceClient.SetMaintenance(ctx, withRequestID(request))
}

func (c *treesWithIDs) HoldNode(
	ctx context.Context, request *quoratev1.HoldNodeRequest,
) (*quoratev1.HoldNodeResponse, error) {
	return c.TreeServiceClient.HoldNode(ctx, withRequestID(request))
}

func (c *treesWithIDs) ResumeNode(
	ctx context.Context, request *quoratev1.ResumeNodeRequest,
) (*quoratev1.ResumeNodeResponse, error) {
	return c.TreeServiceClient.ResumeNode(ctx, withRequestID(request))
}

func (c *treesWithIDs) RollBack(
	ctx context.Context, request *quoratev1.RollBackRequest,
) (*quoratev1.RollBackResponse, error) {
	return c.TreeServiceClient.RollBack(ctx, withRequestID(request))
}

func withRequestID[M interface {
	proto.Message
	GetRequestId() string
}](request M) M {
	if request.GetRequestId() != "" {
		return request
	}
	request = proto.CloneOf(request)
	content := request.ProtoReflect()
	content.Set(content.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(uuid.NewString()))
	return request
}

// allocationsWithIDs adds an id before an allocation is first requested. The answer has it.
type allocationsWithIDs struct {
	quoratev1connect.AllocationServiceClient
}

func (c *allocationsWithIDs) Allocate(
	ctx context.Context, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	return c.AllocationServiceClient.Allocate(ctx, withID(request))
}

func (c *allocationsWithIDs) BatchAllocate(
	ctx context.Context, request *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	batch := &quoratev1.BatchAllocateRequest{}
	for _, r := range request.GetRequests() {
		batch.Requests = append(batch.Requests, withID(r))
	}
	return c.AllocationServiceClient.BatchAllocate(ctx, batch)
}

// Explain adds an id because every request needs one, although nothing is held under it.
func (c *allocationsWithIDs) Explain(
	ctx context.Context, request *quoratev1.ExplainRequest,
) (*quoratev1.ExplainResponse, error) {
	if hypothetical := request.GetRequest(); hypothetical != nil && hypothetical.GetId() == "" {
		request = proto.CloneOf(request)
		request.Question = &quoratev1.ExplainRequest_Request{Request: withID(hypothetical)}
	}
	return c.AllocationServiceClient.Explain(ctx, request)
}

func withID(request *quoratev1.AllocateRequest) *quoratev1.AllocateRequest {
	if request.GetId() != "" {
		return request
	}
	request = proto.CloneOf(request)
	request.Id = uuid.NewString()
	return request
}
