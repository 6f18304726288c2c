//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/load"
)

// users is the number of users of workload principals.
const users = 100

// beginPairs allocates and releases, one by one or in batches.
func beginPairs(_ context.Context, m *measurement) (load.Work, error) {
	return func(ctx context.Context, it *load.Iteration) error {
		ids := make([]string, m.options.batch)
		for i := range ids {
			ids[i] = m.iterationID(it) + "-" + strconv.Itoa(i)
		}
		units := int64(len(ids))
		err := it.Measure("allocate", units, func() error { return m.allocateAll(ctx, ids, it.Caller) })
		if err != nil {
			return err
		}
		return it.Measure("release", units, func() error { return m.releaseAll(ctx, ids) })
	}, nil
}

func (s *session) newRequest(id string, caller int) *quoratev1.AllocateRequest {
	request := &quoratev1.AllocateRequest{Id: id, Claims: []*quoratev1.Claim{{
		Tree: s.tree, Node: s.leafPath(caller % s.options.leaves),
		Amounts: map[string]int64{resourceCPU: 1, resourceMemory: 1},
	}}}
	if s.options.workloadName == "principals" {
		user := caller % users
		request.Principal = &quoratev1.Principal{
			User: fmt.Sprintf("user-%d", user), Groups: []string{fmt.Sprintf("group-%d", user%4)},
		}
	}
	return request
}

// allocateAll makes one call. A batch begins at the leaf of its caller.
func (s *session) allocateAll(ctx context.Context, ids []string, caller int) error {
	if s.options.batch == 1 {
		_, err := s.quorate.Allocations.Allocate(ctx, s.newRequest(ids[0], caller))
		return err
	}
	requests := make([]*quoratev1.AllocateRequest, len(ids))
	for i, id := range ids {
		requests[i] = s.newRequest(id, caller+i)
	}
	answer, err := s.quorate.Allocations.BatchAllocate(ctx, &quoratev1.BatchAllocateRequest{Requests: requests})
	for _, outcome := range answer.GetOutcomes() {
		err = errors.Join(err, failureOf(outcome.GetFailure()))
	}
	return err
}

func (s *session) releaseAll(ctx context.Context, ids []string) error {
	if s.options.batch == 1 {
		return s.releaseOne(ctx, ids[0])
	}
	return s.releaseBatch(ctx, ids)
}

func (s *session) releaseOne(ctx context.Context, id string) error {
	_, err := s.quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	return err
}

func (s *session) releaseBatch(ctx context.Context, ids []string) error {
	requests := make([]*quoratev1.ReleaseRequest, len(ids))
	for i, id := range ids {
		requests[i] = &quoratev1.ReleaseRequest{Id: id}
	}
	answer, err := s.quorate.Allocations.BatchRelease(ctx, &quoratev1.BatchReleaseRequest{Requests: requests})
	for _, outcome := range answer.GetOutcomes() {
		err = errors.Join(err, failureOf(outcome.GetFailure()))
	}
	return err
}

type elementError struct {
	code, message string
}

func (f *elementError) Error() string { return f.message + " (" + f.code + ")" }

func failureOf(f *quoratev1.Failure) error {
	if f == nil {
		return nil
	}
	return &elementError{code: f.GetCode(), message: f.GetMessage()}
}
