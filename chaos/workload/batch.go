package workload

import (
	"context"
	"errors"
	"slices"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// batchTrees has less room than a batch of requests needs.
func batchTrees() []treeSpec { return []treeSpec{newTreeSpec("batch", "", 24, "x", 14, "y", 14)} }

func startBatch(c *caller) func(context.Context) {
	h := &holder{caller: c}
	return func(ctx context.Context) {
		switch {
		case len(h.held) < 4 || c.oneIn(2):
			h.acquireMany(ctx, 2+c.random.IntN(5))
		case c.oneIn(5):
			c.readUsage(ctx, "batch", readMode{})
		default:
			h.releaseMany(ctx, 1+c.random.IntN(len(h.held)))
		}
	}
}

// acquireMany sends one batch and repeats the unanswered requests one by one.
func (h *holder) acquireMany(ctx context.Context, count int) {
	var requests []requestSpec
	for range count {
		node := []string{"x", "y"}[h.random.IntN(2)]
		requests = append(requests, requestSpec{
			id:     h.newName(),
			claims: []history.Claim{claimAt("batch", node, 1+h.random.Int64N(4))},
		})
	}
	for i, o := range h.batchAllocate(ctx, requests) {
		switch o.Outcome {
		case history.OK:
			h.held = append(h.held, holding{id: requests[i].id, claims: requests[i].claims})
		case history.Unknown:
			h.acquireOne(ctx, requests[i])
		case history.Refused, history.Failed:
		}
	}
}

func (h *holder) releaseMany(ctx context.Context, count int) {
	var ids []string
	for _, one := range h.held[:count] {
		ids = append(ids, one.id)
	}
	h.held = slices.Delete(h.held, 0, count)
	for i, o := range h.batchRelease(ctx, ids) {
		if !isDecided(o) {
			h.retryUntilDecided(ctx, func() history.Op { return h.callRelease(ctx, ids[i]) })
		}
	}
}

// batchAllocate makes one attempt. Each request is an operation of its own; they share a session.
func (c *caller) batchAllocate(ctx context.Context, requests []requestSpec) []history.Op {
	s := c.randomServer()
	c.serial++
	begun := c.beginOp(history.Allocate, s)
	begun.Session = int64(c.serial)
	request := &quoratev1.BatchAllocateRequest{}
	for _, w := range requests {
		request.Requests = append(request.Requests, w.toProto())
	}
	var answer *quoratev1.BatchAllocateResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.BatchAllocate(ctx, request)
		return err
	})
	var ended []history.Op
	for i, w := range requests {
		o, failure := *begun, err
		w.fillIn(&o)
		if err == nil {
			failure = errNoAnswer
		}
		if i < len(answer.GetOutcomes()) {
			setGrant(&o, answer.GetOutcomes()[i].GetGranted())
			failure = failureError(answer.GetOutcomes()[i].GetFailure())
		}
		ended = append(ended, c.endOp(&o, failure))
	}
	return ended
}

func (c *caller) batchRelease(ctx context.Context, ids []string) []history.Op {
	s := c.randomServer()
	c.serial++
	begun := c.beginOp(history.Release, s)
	begun.Session = int64(c.serial)
	requests := make([]*quoratev1.ReleaseRequest, len(ids))
	for i, name := range ids {
		namespace, id := splitName(name)
		requests[i] = &quoratev1.ReleaseRequest{Namespace: namespace, Id: id}
	}
	var answer *quoratev1.BatchReleaseResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.BatchRelease(ctx, &quoratev1.BatchReleaseRequest{Requests: requests})
		return err
	})
	var ended []history.Op
	for i, id := range ids {
		o, failure := *begun, err
		o.ID = id
		if err == nil {
			failure = errNoAnswer
		}
		if i < len(answer.GetOutcomes()) {
			released := answer.GetOutcomes()[i].GetReleased()
			o.Index, o.Repeated = released.GetWrite().GetIndex(), released.GetWrite().GetRepetition()
			setAllocation(&o, released.GetAllocation())
			failure = failureError(answer.GetOutcomes()[i].GetFailure())
		}
		ended = append(ended, c.endOp(&o, failure))
	}
	return ended
}

type elementError struct{ failure *quoratev1.Failure }

// Error returns the message of the server.
func (r *elementError) Error() string { return r.failure.GetMessage() }

// failureError returns nil if the element was carried out.
func failureError(f *quoratev1.Failure) error {
	if f == nil {
		return nil
	}
	return &elementError{f}
}

func refusalOf(err error) (*quoratev1.Failure, bool) {
	var r *elementError
	if errors.As(err, &r) {
		return r.failure, true
	}
	return nil, false
}
