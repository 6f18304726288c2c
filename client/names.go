package client

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
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

// configurationWithIDs does the same for this service.
type configurationWithIDs struct {
	adminv1connect.ConfigurationServiceClient
}

func (c *configurationWithIDs) RollBack(
	ctx context.Context, request *adminv1.RollBackRequest,
) (*adminv1.RollBackResponse, error) {
	return c.ConfigurationServiceClient.RollBack(ctx, withRequestID(request))
}

// cordonsWithIDs does the same for this service.
type cordonsWithIDs struct {
	adminv1connect.CordonServiceClient
}

func (c *cordonsWithIDs) CordonNode(
	ctx context.Context, request *adminv1.CordonNodeRequest,
) (*adminv1.CordonNodeResponse, error) {
	return c.CordonServiceClient.CordonNode(ctx, withRequestID(request))
}

func (c *cordonsWithIDs) UncordonNode(
	ctx context.Context, request *adminv1.UncordonNodeRequest,
) (*adminv1.UncordonNodeResponse, error) {
	return c.CordonServiceClient.UncordonNode(ctx, withRequestID(request))
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
