package client

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
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
