package main

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func (f *fake) HoldNode(_ context.Context, r *quoratev1.HoldNodeRequest) (*quoratev1.HoldNodeResponse, error) {
	f.keepRequest(r)
	result, err := f.changeResult(r, r.ExpectedRevision)
	return &quoratev1.HoldNodeResponse{Result: result}, err
}

func (f *fake) ResumeNode(_ context.Context, r *quoratev1.ResumeNodeRequest) (*quoratev1.ResumeNodeResponse, error) {
	f.keepRequest(r)
	result, err := f.changeResult(r, r.ExpectedRevision)
	return &quoratev1.ResumeNodeResponse{Result: result}, err
}
