package ledger

import (
	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
)

// SandboxReader is a Reader with exclusive access, see Sandbox.
type SandboxReader struct {
	Reader
	sandbox Sandbox
	by      *access.Caller
}

// ReaderOf is that of a View.
func (s Sandbox) ReaderOf(by *access.Caller) (SandboxReader, *quota.Error) {
	r, err := s.View.ReaderOf(by)
	return SandboxReader{r, s, by}, err
}

// DryRun decides a command of the caller, see [Sandbox.DryRunFrom].
func (s SandboxReader) DryRun(c quota.Command) Outcome {
	return s.RedactOutcome(s.sandbox.DryRunFrom(Origin{Caller: s.by}, c))
}

// Explain is that of a Sandbox, for a request that the caller may make.
func (s SandboxReader) Explain(c quota.Allocate) Explained {
	if s.id == nil {
		return s.sandbox.explain(c, s.sees)
	}
	if out := s.sandbox.DryRunFrom(Origin{Caller: s.by}, c); out.Refused != nil {
		return Explained{Outcome: out}
	}
	out := s.sandbox.explain(c, s.sees)
	out.Outcome, out.Levels = s.RedactOutcome(out.Outcome), s.shownLevels(out.Levels)
	return out
}

// ExplainID is that of a Sandbox, for an allocation or a denial that the caller sees.
func (s SandboxReader) ExplainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	d, a, at, err := s.sandbox.explainID(id, s.sees, s.seesEvent)
	if err != nil || s.id == nil {
		return d, a, at, err
	}
	if a != nil {
		seen := s.redacted(*a)
		a = &seen
	}
	return s.redactDecision(d), a, at, nil
}

// Waiting is a page of the queue, as far as the caller may see the requests.
func (s SandboxReader) Waiting(f quota.QueueFilter, after *quota.QueueTurn, max int) (quota.QueuePage, *quota.Error) {
	page, err := s.sandbox.Waiting(f, after, max)
	return s.shownQueue(page), err
}

// WaitingWithBlockers is that of a Sandbox, as far as the caller may see the requests and who is in their way.
func (s SandboxReader) WaitingWithBlockers(
	f quota.QueueFilter, after *quota.QueueTurn, max int,
) (quota.QueuePage, *quota.Error) {
	page, err := s.sandbox.waitingWithBlockers(f, after, max, s.sees)
	return s.shownQueue(page), err
}

// shownQueue is a page of the queue as far as the caller may see the requests.
func (s SandboxReader) shownQueue(page quota.QueuePage) quota.QueuePage {
	if s.id == nil {
		return page
	}
	var seen []quota.QueuedInfo
	for _, q := range page.Requests {
		isResize := q.Allocation.Resize != nil
		if !s.sees(&q.Allocation) {
			continue
		}
		q.Allocation, q.Decision = s.redacted(q.Allocation), s.redactDecision(q.Decision)
		if !isResize || q.Allocation.Resize != nil {
			seen = append(seen, q)
		}
	}
	page.Requests = seen
	return page
}

// Forecast is that of a Sandbox, for a caller who may read holders on the whole cluster: the instants depend on all of
// them. For others nothing is known.
func (s SandboxReader) Forecast() (map[string]quota.Instant, *quota.Error) {
	if s.FiltersHolders() {
		return nil, nil
	}
	return s.sandbox.Forecast()
}
