package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Resize changes amounts of an allocation and waits until that is done, for the wait_ms of the request; without any it
// does not wait. The allocation holds its present amounts meanwhile. The resize keeps its position when servers restart
// or the client fails over. If the context ends first, it stays in the queue until its time is over.
//
// Callers that change one allocation more than once number the changes with generations: then a call whose answer was
// lost can be repeated at any time.
//
// The error is a *DeniedError if the resize can never fit or may not wait, a *TimedOutError if its time to wait is
// over, and any other answer as the server sent it.
func (c *Client) Resize(
	ctx context.Context, request *quoratev1.ResizeRequest, options ...AcquireOption,
) (*quoratev1.ResizeResponse, error) {
	a := &acquisition{client: c, began: time.Now(), report: func(Progress) {}}
	for _, option := range options {
		option(a)
	}
	request = proto.CloneOf(request)
	until := a.began.Add(time.Duration(request.GetWaitMs()) * time.Millisecond)
	var last *quoratev1.ResizeResponse
	for {
		sent := time.Now()
		answer, err := c.Allocations.Resize(ctx, request)
		if err != nil {
			return nil, a.resizeFailure(err, last, until)
		}
		if answer.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING {
			return answer, nil
		}
		last = answer
		a.report(Progress{time.Since(a.began), answer.GetAllocation(), answer.GetDecision()})
		if err := sleepContext(ctx, pollPause-time.Since(sent)); err != nil {
			return nil, a.resizeFailure(err, last, until)
		}
		left := time.Until(until).Milliseconds()
		if left < 1 {
			return nil, a.resizeFailure(context.DeadlineExceeded, last, until)
		}
		request.WaitMs = left // in case that it has ended meanwhile, and this is a new one
		request.PollMs = min(left, pollTime.Milliseconds())
	}
}

func (a *acquisition) resizeFailure(err error, last *quoratev1.ResizeResponse, until time.Time) error {
	if decision, denied := DecisionOf(err); denied {
		return &DeniedError{Decision: decision, cause: err}
	}
	reason := reasonOf(err)
	isOver := reason == "ENDED" || reason == "GENERATION_MISMATCH" || errors.Is(err, context.DeadlineExceeded)
	if last != nil && isOver && time.Until(until) < time.Second {
		return &TimedOutError{Decision: last.GetDecision(), Waited: time.Since(a.began), cause: err}
	}
	return err
}
