package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	// pollTime is how long a server waits for the grant before it says where the request stands.
	pollTime = 10 * time.Second
	// pollPause is kept at least between two calls, for servers that do not wait.
	pollPause = 100 * time.Millisecond
	// leavePatience bounds the call that takes a request back whose caller waits no more.
	leavePatience = 2 * time.Second
	// mostWait is the longest wait that the API has.
	mostWait = 7 * 24 * time.Hour
)

// Progress is where a request stands that waits.
type Progress struct {
	// Elapsed is since Acquire was called.
	Elapsed time.Duration
	// Allocation is the waiting record; its Waiting has the position and the line.
	Allocation *quoratev1.Allocation
	// Decision names what is in the way now.
	Decision *quoratev1.Decision
}

// AcquireOption changes how Acquire works.
type AcquireOption func(*acquisition)

// WithProgress is told where the request stands, at first and then about every ten seconds, by the goroutine that
// called Acquire.
func WithProgress(report func(Progress)) AcquireOption {
	return func(a *acquisition) { a.report = report }
}

// WithMargin says how long before its end a lease is over for its holder, at most a third of its TTL. The default is
// a tenth of the TTL, and at most three seconds. It should be as long as the holder needs to stop.
func WithMargin(margin time.Duration) AcquireOption {
	return func(a *acquisition) { a.margin = margin }
}

// Acquire asks for an allocation and renews it in the background until it is released or lost.
//
// A request without a mode waits in the queue (MODE_WAIT) until there is room or the context ends, whatever servers
// come and go meanwhile; it is always asked for under the same id. When the context ends first, the request is taken
// out of the queue. With MODE_REJECT or MODE_FORCE it does not wait; reservations and dry runs make no lease.
//
// If neither the request nor its items and trees have a TTL, it is held until it is released, and nothing is renewed.
//
// Errors: *DeniedError if it can never fit, or was not to wait; *TimedOutError if it waited in vain; ErrUnavailable
// if no server answered; ErrLost if it ended while it waited; context.Canceled; and any other answer as the server
// sent it.
func (c *Client) Acquire(ctx context.Context, request *quoratev1.AllocateRequest, options ...AcquireOption) (*Lease, error) {
	a, err := c.newAcquisition(ctx, request, options)
	if err != nil {
		return nil, err
	}
	answer, sent, err := a.waitForGrant(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := a.newLease(ctx, answer, sent)
	if err != nil {
		return nil, err
	}
	if lease.currentTTL() > 0 {
		c.renewer.addLease(lease, time.Now().Add(lease.renewIn()))
	}
	return lease, nil
}

// Wait asks for an allocation and waits for it as Acquire does, with the same errors, but leaves it to the caller to
// renew what it answers.
func (c *Client) Wait(
	ctx context.Context, request *quoratev1.AllocateRequest, options ...AcquireOption,
) (*quoratev1.AllocateResponse, error) {
	a, err := c.newAcquisition(ctx, request, options)
	if err != nil {
		return nil, err
	}
	answer, _, err := a.waitForGrant(ctx)
	return answer, err
}

func (c *Client) newAcquisition(
	ctx context.Context, request *quoratev1.AllocateRequest, options []AcquireOption,
) (*acquisition, error) {
	a := &acquisition{client: c, began: time.Now(), report: func(Progress) {}}
	for _, option := range options {
		option(a)
	}
	return a, a.prepareRequest(ctx, request)
}

// acquisition is one call of Acquire or Wait.
type acquisition struct {
	client  *Client
	request *quoratev1.AllocateRequest
	began   time.Time
	margin  time.Duration
	report  func(Progress)
	// last is the latest answer that the request waits; nil before the first.
	last *quoratev1.AllocateResponse
}

// prepareRequest makes the request that all calls will carry: a repetition must be the same.
func (a *acquisition) prepareRequest(ctx context.Context, request *quoratev1.AllocateRequest) error {
	a.request = proto.CloneOf(withID(request))
	switch request.GetMode() {
	case quoratev1.Mode_MODE_UNSPECIFIED, quoratev1.Mode_MODE_WAIT:
		a.request.Mode = quoratev1.Mode_MODE_WAIT
	case quoratev1.Mode_MODE_REJECT, quoratev1.Mode_MODE_FORCE:
	case quoratev1.Mode_MODE_DRY_RUN, quoratev1.Mode_MODE_RESERVE:
		return fmt.Errorf("client: %v makes no lease: leave the mode out, or call Allocations.Allocate", request.GetMode())
	}
	if deadline, limited := ctx.Deadline(); limited && a.mayWait() && request.GetWaitMs() == 0 {
		a.request.WaitMs = min(max(time.Until(deadline), time.Second), mostWait).Milliseconds()
	}
	return nil
}

func (a *acquisition) mayWait() bool { return a.request.GetMode() == quoratev1.Mode_MODE_WAIT }

// waitForGrant asks until the request is granted, or will not be. It says when the question was sent that was answered.
func (a *acquisition) waitForGrant(ctx context.Context) (granted *quoratev1.AllocateResponse, sent time.Time, err error) {
	for {
		answer, sent, err := a.askOnce(ctx)
		if err != nil {
			return nil, sent, a.typedFailure(ctx, err)
		}
		if answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
			return answer, sent, nil
		}
		a.last = answer
		a.request.PollMs = pollTime.Milliseconds() // the first question does not wait, so that the caller knows soon
		a.report(Progress{time.Since(a.began), answer.GetAllocation(), answer.GetDecision()})
		if err := sleepContext(ctx, pollPause-time.Since(sent)); err != nil {
			return nil, sent, a.typedFailure(ctx, err)
		}
	}
}

// askOnce makes one call, which may take several attempts, and says when the one was sent that was answered.
func (a *acquisition) askOnce(ctx context.Context) (*quoratev1.AllocateResponse, time.Time, error) {
	if _, limited := ctx.Deadline(); !limited {
		patient, cancel := context.WithTimeout(ctx, a.client.patience+pollTime)
		defer cancel()
		ctx = patient
	}
	try := &attemptControl{}
	answer, err := a.client.Allocations.Allocate(withAttempts(ctx, try), a.request)
	return answer, try.sentAt, err
}

// sleepContext lets a time pass, unless the context ends.
func sleepContext(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(max(0, pause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newLease is made of a grant. One that had to wait is renewed at once: the answer may come from a server that lags
// behind, and its question may have been on its way for long, so it does not tell how long the lease lasts from now
// on.
func (a *acquisition) newLease(ctx context.Context, answer *quoratev1.AllocateResponse, sent time.Time) (*Lease, error) {
	l := &Lease{
		client: a.client, id: a.request.GetId(), fence: answer.GetFence(), margin: a.margin, revoked: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.record = answer.GetAllocation()
	if ttl := l.currentTTL(); ttl > 0 && (a.last != nil || time.Since(sent) > ttl/marginPart) {
		if err := l.renewNow(ctx); err != nil {
			return nil, a.typedFailure(ctx, err)
		}
		return l, nil
	}
	l.applyRenewal(answer.GetAllocation(), sent, answer.GetLedgerTimeMs())
	return l, nil
}

// renewNow renews a lease that its caller does not know yet.
func (l *Lease) renewNow(ctx context.Context) error {
	try := &attemptControl{}
	answer, err := l.client.Allocations.Renew(withAttempts(ctx, try), &quoratev1.RenewRequest{Id: l.id, Fence: l.fence})
	if err != nil {
		return err
	}
	l.applyRenewal(answer.GetAllocation(), try.sentAt, answer.GetLedgerTimeMs())
	return nil
}

// typedFailure makes a typed error of what a call met, and takes the request back if it may be there.
func (a *acquisition) typedFailure(ctx context.Context, err error) error {
	decision, denied := DecisionOf(err)
	switch {
	case denied:
		return &DeniedError{Decision: decision, cause: err}
	case a.last != nil && reasonOf(err) == "ENDED":
		return a.classifyEnd(ctx, err)
	case !isTransient(err) && !errors.Is(err, ctx.Err()):
		return err
	}
	if a.last != nil || MayBeDone(err) || ctx.Err() != nil {
		a.cancelRequest(ctx)
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("the wait for %q was broken off: %w", a.request.GetId(), context.Cause(ctx))
	case ctx.Err() != nil && a.last != nil:
		return a.timedOut(context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func reasonOf(err error) string {
	problem, _ := ProblemOf(err)
	return problem.GetReason()
}

func (a *acquisition) timedOut(cause error) error {
	return &TimedOutError{Decision: a.last.GetDecision(), Waited: time.Since(a.began), cause: cause}
}

// classifyEnd tells the end of the time to wait from every other end of a request that waited.
func (a *acquisition) classifyEnd(ctx context.Context, err error) error {
	id := a.request.GetId()
	answer, unknown := a.client.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id})
	if unknown == nil && answer.GetAllocation().GetState() == quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT {
		return a.timedOut(err)
	}
	return &LostError{ID: id, How: Ended, cause: err}
}

// cancelRequest takes the request out of the queue, and gives back what it may have been granted at the last moment. If that
// does not get through, the request goes by itself when its keep_ms are over.
func (a *acquisition) cancelRequest(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	_, err := a.client.Allocations.Release(bounded, &quoratev1.ReleaseRequest{Id: a.request.GetId()})
	if err != nil {
		a.client.notice(err)
	}
}
