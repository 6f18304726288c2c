package main

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// The cluster of the fake is in the middle of an upgrade, and the state of one member differs.

func (f *fake) GetLevel(_ context.Context, r *adminv1.GetLevelRequest) (*adminv1.GetLevelResponse, error) {
	f.keepRequest(r)
	return &adminv1.GetLevelResponse{Level: 3}, nil
}

func (f *fake) RaiseLevel(_ context.Context, r *adminv1.RaiseLevelRequest) (*adminv1.RaiseLevelResponse, error) {
	f.keepRequest(r)
	return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(
		"this needs feature level 4 on all members, and these are not known to have it: n2 (version v0.4.0, feature "+
			"level 3); upgrade or "+
			"start them, or remove them from the cluster"))
}

func (f *fake) Checkpoint(_ context.Context, r *adminv1.CheckpointRequest) (*adminv1.CheckpointResponse, error) {
	f.keepRequest(r)
	return &adminv1.CheckpointResponse{Write: &quoratev1.WriteInfo{Index: 17}}, nil
}
