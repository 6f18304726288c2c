package main

import (
	"context"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

func (f *fake) CordonNode(_ context.Context, r *adminv1.CordonNodeRequest) (*adminv1.CordonNodeResponse, error) {
	f.keepRequest(r)
	result, err := f.changeResult(r, r.ExpectedRevision)
	return &adminv1.CordonNodeResponse{Result: result}, err
}

func (f *fake) UncordonNode(_ context.Context, r *adminv1.UncordonNodeRequest) (*adminv1.UncordonNodeResponse, error) {
	f.keepRequest(r)
	result, err := f.changeResult(r, r.ExpectedRevision)
	return &adminv1.UncordonNodeResponse{Result: result}, err
}
