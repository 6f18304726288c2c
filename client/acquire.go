package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// pollTime is how long a server waits for the grant before it answers with the position in the queue.
	pollTime = 10 * time.Second
	// pollPause is the shortest time between two calls, for servers that do not wait.
	pollPause = 100 * time.Millisecond
	// leavePatience bounds the call that withdraws a request when its caller stops waiting.
	leavePatience = 2 * time.Second
	// mostWait is the longest wait that the API accepts.
	mostWait = 7 * 24 * time.Hour
)

// Progress is the state of a waiting request.
type Progress struct {
	// Elapsed is the time since Acquire was called.
	Elapsed time.Duration
	// Allocation is the record of the request; its field Waiting has the position in the queue.
	Allocation *quoratev1.Allocation
	// Decision names the limits that are in the way now.
	Decision *quoratev1.Decision
}

// AcquireOption configures Acquire and Wait.
type AcquireOption func(*acquisition)

// WithProgress makes Acquire call report when the request begins to wait and then about every ten seconds, in the
// goroutine that called Acquire.
func WithProgress(report func(Progress)) AcquireOption {
	return func(a *acquisition) { a.report = report }
}

// WithMargin sets how long before the end of its TTL a lease ends for its holder, at most a third of the TTL. The
// default is a tenth of the TTL, and at most three seconds. Choose the time that the holder needs to stop.
func WithMargin(margin time.Duration) AcquireOption {
	return func(a *acquisition) { a.margin = margin }
}

// Acquire requests an allocation and renews it in the background until it is released or lost.
//
// A request without a mode waits in the queue (MODE_WAIT) until it is granted or the context ends. It keeps its id and
// its position when servers restart or the client fails over. If the context ends first, the request leaves the queue:
// pass one of signal.NotifyContext, so that Ctrl-C does not leave it there. A panic of a report withdraws it too.
// With MODE_REJECT or MODE_FORCE it does not wait. Reservations and dry runs are errors, because they make no lease.
//
// If neither the request nor its items and trees have a TTL, the allocation is held until it is released, and nothing
// is renewed.
//
// The error is a *DeniedError if the request can never fit or may not wait, a *TimedOutError if its time to wait is
// over, ErrUnavailable if no server answers, ErrLost if the request ended while it waited, context.Canceled, or
// any other answer as the server sent it.
func (c *Client) Acquire(
	ctx context.Context,
	request *quoratev1.AllocateRequest,
	options ...AcquireOption,
) (*Lease, error) {
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
		c.renewer.addLease(lease, c.clock.now().Add(lease.renewIn()))
	}
	return lease, nil
}

// Wait requests an allocation and waits for it as Acquire does, with the same errors. The caller renews the allocation.
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

type acquisition struct {
	client  *Client
	request *quoratev1.AllocateRequest
	began   time.Time
	margin  time.Duration
	report  func(Progress)
	// last is the latest answer while the request waits; nil before the first.
	last *quoratev1.AllocateResponse
}

// prepareRequest makes the request that all calls carry: an attempt must not differ from the one before.
func (a *acquisition) prepareRequest(ctx context.Context, request *quoratev1.AllocateRequest) error {
	a.request = proto.CloneOf(withID(withNamespace(request, a.client.namespace)))
	switch request.GetMode() {
	case quoratev1.Mode_MODE_UNSPECIFIED, quoratev1.Mode_MODE_WAIT:
		a.request.Mode = quoratev1.Mode_MODE_WAIT
	case quoratev1.Mode_MODE_REJECT, quoratev1.Mode_MODE_FORCE:
	case quoratev1.Mode_MODE_RESERVE:
		return errors.New("client: MODE_RESERVE makes no lease: leave the mode out, or call Allocations.Allocate")
	}
	if deadline, limited := ctx.Deadline(); limited && a.mayWait() && request.WaitMs == nil {
		a.request.WaitMs = new(min(max(time.Until(deadline), time.Second), mostWait).Milliseconds())
	}
	return nil
}

func (a *acquisition) mayWait() bool { return a.request.GetMode() == quoratev1.Mode_MODE_WAIT }

// waitForGrant calls until the request is granted or can no longer be granted. It returns when the call that was
// answered was sent.
func (a *acquisition) waitForGrant(
	ctx context.Context,
) (granted *quoratev1.AllocateResponse, sent time.Time, err error) {
	hasOutcome := false
	defer func() {
		if !hasOutcome { // the report of the caller has panicked, or has ended the goroutine
			a.cancelRequest(ctx)
		}
	}()
	granted, sent, err = a.askUntilGranted(ctx)
	hasOutcome = true
	return granted, sent, err
}

func (a *acquisition) askUntilGranted(
	ctx context.Context,
) (granted *quoratev1.AllocateResponse, sent time.Time, err error) {
	for {
		answer, sent, err := a.askOnce(ctx)
		if err != nil {
			return nil, sent, a.typedFailure(ctx, err)
		}
		if answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
			return answer, sent, nil
		}
		a.last = answer
		a.request.PollMs = pollTime.Milliseconds() // the first call does not wait, so that progress is reported soon
		a.report(Progress{time.Since(a.began), answer.GetAllocation(), answer.GetDecision()})
		if err := sleepContext(ctx, pollPause-a.client.clock.since(sent)); err != nil {
			return nil, sent, a.typedFailure(ctx, err)
		}
	}
}

// askOnce makes one call, which may take several attempts, and returns when the attempt that was answered was sent.
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

// newLease makes a lease of a grant. A grant that had to wait is renewed at once: its answer may come from a server
// that lags, and its request may have taken long, so that it does not tell how long the lease lasts from now on.
func (a *acquisition) newLease(
	ctx context.Context,
	answer *quoratev1.AllocateResponse,
	sent time.Time,
) (*Lease, error) {
	l := &Lease{
		client: a.client, name: allocationName{answer.GetAllocation().GetNamespace(), a.request.GetId()},
		fence: answer.GetAllocation().GetFence(), margin: a.margin,
		revoked: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.record = answer.GetAllocation()
	if ttl := l.currentTTL(); ttl > 0 && (a.last != nil || a.client.clock.since(sent) > ttl/marginPart) {
		if err := l.renewNow(ctx); err != nil {
			return nil, a.typedFailure(ctx, err)
		}
		return l, nil
	}
	l.applyRenewal(answer.GetAllocation(), sent, answer.GetWrite().GetLedgerTimeMs())
	return l, nil
}

func (l *Lease) renewNow(ctx context.Context) error {
	try := &attemptControl{}
	answer, err := l.client.Allocations.Renew(withAttempts(ctx, try), &quoratev1.RenewRequest{
		Namespace: l.name.namespace, Id: l.name.id, Fence: l.fence,
	})
	if err != nil {
		return err
	}
	l.applyRenewal(answer.GetAllocation(), try.sentAt, answer.GetWrite().GetLedgerTimeMs())
	return nil
}

// typedFailure makes the typed error of a failed call, and withdraws the request if the servers may have it.
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
		return fmt.Errorf("waiting for %q was cancelled: %w", a.request.GetId(), context.Cause(ctx))
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

// classifyEnd distinguishes a request that timed out in the queue from one that ended otherwise.
func (a *acquisition) classifyEnd(ctx context.Context, err error) error {
	namespace, id := a.request.GetNamespace(), a.request.GetId()
	answer, unknown := a.client.Allocations.GetAllocation(
		ctx, &quoratev1.GetAllocationRequest{Namespace: namespace, Id: id})
	if unknown == nil && answer.GetAllocation().GetState() == quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT {
		return a.timedOut(err)
	}
	return &LostError{Namespace: namespace, ID: id, How: Ended, cause: err}
}

// cancelRequest removes the request from the queue, or releases what it was granted at the last moment. If no server
// answers, the request leaves the queue when its keep_ms are over.
func (a *acquisition) cancelRequest(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	_, err := a.client.Allocations.Release(bounded, &quoratev1.ReleaseRequest{
		Namespace: a.request.GetNamespace(), Id: a.request.GetId(),
	})
	if err != nil {
		a.client.notice(err)
	}
}
