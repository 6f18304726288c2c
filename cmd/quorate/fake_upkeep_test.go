package main

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// The cluster of the fake is in the middle of an upgrade, and the state of one member differs.

func (f *fake) GetLevel(_ context.Context, r *quoratev1.GetLevelRequest) (*quoratev1.GetLevelResponse, error) {
	f.keepRequest(r)
	return &quoratev1.GetLevelResponse{Level: 3}, nil
}

func (f *fake) RaiseLevel(_ context.Context, r *quoratev1.RaiseLevelRequest) (*quoratev1.RaiseLevelResponse, error) {
	f.keepRequest(r)
	return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(
		"this needs feature level 4 on all members, and these are not known to have it: n2 (version v0.4.0, feature "+
			"level 3); upgrade or "+
			"start them, or remove them from the cluster"))
}

func (f *fake) Checkpoint(_ context.Context, r *quoratev1.CheckpointRequest) (*quoratev1.CheckpointResponse, error) {
	f.keepRequest(r)
	return &quoratev1.CheckpointResponse{Write: &quoratev1.WriteInfo{Index: 17}}, nil
}

func (f *fake) GetDigests(_ context.Context, r *quoratev1.GetDigestsRequest) (*quoratev1.GetDigestsResponse, error) {
	f.keepRequest(r)
	return &quoratev1.GetDigestsResponse{Members: []*quoratev1.MemberDigest{
		{Id: "n1", Index: 17, Digest: "0123456789abcdef", Finding: quoratev1.Finding_FINDING_AGREES},
		{Id: "n2", Index: 17, Digest: "fedcba9876543210", Finding: quoratev1.Finding_FINDING_DIFFERS},
		{Id: "n3"},
	}}, nil
}
