package client

import (
	"context"
	"errors"
	"slices"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// A share looks at its steps when something changes and at least every manageEvery. After the servers denied a step it
// asks again after a pause that grows.
const (
	manageEvery   = 500 * time.Millisecond
	firstDenied   = 100 * time.Millisecond
	longestDenied = 2 * time.Second
)

// manage grows and shrinks the share until ctx ends. It makes one call at a time.
func (s *Share) manage(ctx context.Context) {
	tick := time.NewTicker(manageEvery)
	defer tick.Stop()
	pause := firstDenied
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-tick.C:
		}
		s.dropSteps(ctx)
		for ctx.Err() == nil && s.mustGrow() {
			if err := s.addStep(ctx); err != nil {
				time.AfterFunc(spreadTime(pause), s.unblock)
				pause = min(2*pause, longestDenied)
				break
			}
			pause = firstDenied
		}
	}
}

func (s *Share) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = false
	s.notify()
}

// mustGrow is true if the minimum is not held, callers want more than there is, or less than half a step is free.
func (s *Share) mustGrow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.blocked || s.total()+s.config.Step > s.config.Max {
		return false
	}
	return s.held < s.config.Min || s.wanted || len(s.waiting) > 0 ||
		s.used > 0 && s.freeUnits() < s.config.Step/2
}

// total includes steps that only wait for the end of their last grants; mu is held.
func (s *Share) total() int64 { return int64(len(s.steps)) * s.config.Step }

// freeUnits needs mu to be held.
func (s *Share) freeUnits() (free int64) {
	for _, step := range s.steps {
		if !step.over {
			free += s.config.Step - step.used
		}
	}
	return free
}

// addStep requests one more lease. Its error is a denial or a failure to reach the servers.
func (s *Share) addStep(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.config.TTL)
	defer cancel()
	lease, err := s.client.Acquire(bounded, &quoratev1.AllocateRequest{
		Mode: quoratev1.Mode_MODE_REJECT, TtlMs: s.config.TTL.Milliseconds(),
		Claims: []*quoratev1.Claim{{
			Tree: s.config.Tree, Node: s.config.Node, Amounts: map[string]int64{s.config.Resource: s.config.Step},
		}},
		Principal: s.config.principal(),
	}, WithMargin(s.config.Margin))
	s.mu.Lock()
	defer s.mu.Unlock()
	if denied := (*DeniedError)(nil); errors.As(err, &denied) {
		s.stats.Denied++
	}
	s.wanted, s.blocked, s.stats.Err = false, err != nil, err
	if err != nil {
		return err
	}
	step := &shareStep{lease: lease, idle: time.Now()}
	s.steps = append(s.steps, step)
	s.held += s.config.Step
	s.stats.Grown++
	s.manager.Go(func() { s.watchStep(step) })
	s.serveWaiting()
	return nil
}

// watchStep stops granting from a step when its lease is lost or revoked.
func (s *Share) watchStep(step *shareStep) {
	select {
	case <-step.lease.Revoked():
		s.endStep(step, false)
		<-step.lease.Context().Done()
	case <-step.lease.Context().Done():
	}
	s.endStep(step, !errors.Is(context.Cause(step.lease.Context()), ErrReleased))
}

func (s *Share) endStep(step *shareStep, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !step.over {
		step.over = true
		s.held -= s.config.Step
	}
	if lost {
		s.stats.Lost++
	}
	s.notify()
}

// dropSteps forgets lost steps, and returns those that are unneeded or revoked and have no grants.
func (s *Share) dropSteps(ctx context.Context) {
	for _, step := range s.takeUnneeded() {
		s.returnStep(ctx, step)
	}
}

// takeUnneeded removes steps from the share. A step is unneeded when it has been idle for long enough, more than a step
// and a half is free without it, so that the next caller does not make the share grow again, and the minimum is held
// without it.
func (s *Share) takeUnneeded() (unneeded []*shareStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.freeUnits()
	s.steps = slices.DeleteFunc(s.steps, func(step *shareStep) bool {
		if step.over {
			return step.used == 0 && s.keep(&unneeded, step) || step.lease.Remaining() == 0
		}
		if step.used > 0 || time.Since(step.idle) < s.config.IdleTime || s.held-s.config.Step < s.config.Min ||
			free-s.config.Step < s.config.Step+s.config.Step/2 && s.used > 0 || len(s.waiting) > 0 {
			return false
		}
		step.over = true
		s.held -= s.config.Step
		free -= s.config.Step
		return s.keep(&unneeded, step)
	})
	return unneeded
}

func (s *Share) keep(list *[]*shareStep, step *shareStep) bool {
	*list = append(*list, step)
	return true
}

// returnStep returns a lease to the servers. If they do not answer, it expires.
func (s *Share) returnStep(ctx context.Context, step *shareStep) {
	if err := step.lease.Release(ctx); err != nil {
		s.client.notice(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Returned++
}

// Close stops granting, waits until all grants that are not over are released, and returns the leases. If ctx ends
// before, the grants that are left end as if their leases were lost, and the leases expire at the servers, not earlier
// than the contract of Share allows; Close then returns the cause. Callers that wait get ErrShareClosed.
func (s *Share) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for _, w := range s.waiting {
		close(w.grant)
	}
	s.waiting = nil
	s.mu.Unlock()
	s.ended()
	var cause error
	for !s.closeSteps(ctx, false) && cause == nil {
		select {
		case <-s.changed:
		case <-time.After(manageEvery):
		case <-ctx.Done():
			cause = context.Cause(ctx)
			s.closeSteps(context.WithoutCancel(ctx), true)
		}
	}
	s.manager.Wait()
	return cause
}

// closeSteps returns the steps without grants; with force it abandons the others. It reports whether none is left.
func (s *Share) closeSteps(ctx context.Context, force bool) bool {
	s.mu.Lock()
	var unused []*shareStep
	s.steps = slices.DeleteFunc(s.steps, func(step *shareStep) bool {
		if !step.over {
			step.over = true
			s.held -= s.config.Step
		}
		return step.used == 0 && s.keep(&unused, step)
	})
	left := slices.Clone(s.steps)
	s.mu.Unlock()
	for _, step := range unused {
		s.returnStep(ctx, step)
	}
	if force {
		for _, step := range left {
			step.lease.endLease(&LostError{ID: step.lease.ID(), How: Unrenewed, cause: ErrShareClosed})
		}
	}
	return len(left) == 0
}
