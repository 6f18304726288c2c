package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// Sandbox is a ledger with exclusive access: it answers questions by changing the state and reverting the change. Being
// a type of its own, it keeps readers that share the ledger from calling these methods.
type Sandbox struct {
	Reader
	// by asks: the server itself, or the caller of ReaderOf.
	by *access.Caller
}

// SandboxReader is the former name of a Sandbox.
type SandboxReader = Sandbox

// Sandbox returns a sandbox for a caller that excludes all others.
func (l *Ledger) Sandbox() Sandbox {
	l.forest.forgetUses()
	return Sandbox{l.View(), &systemCaller}
}

// ReaderOf is the sandbox of a caller: its answers have only what the caller may see, see [Reader.ReaderOf].
func (s Sandbox) ReaderOf(by *access.Caller) (Sandbox, *quota.Error) {
	r, err := s.Reader.ReaderOf(by)
	return Sandbox{r, by}, err
}

// At is that of a Reader.
func (s Sandbox) At(wall int64) Sandbox { return Sandbox{s.Reader.At(wall), s.by} }

// AsOf is that of a Reader. What the sandbox decides is still decided at the time of the last command.
func (s Sandbox) AsOf(at quota.Instant) Sandbox { return Sandbox{s.Reader.AsOf(at), s.by} }

// DryRun decides a command of the caller on the present state, as Apply would, and leaves the state unchanged. A
// command other than Allocate and a change of configuration returns the present state of its object.
func (s Sandbox) DryRun(c quota.Command) Outcome {
	return s.RedactOutcome(s.DryRunFrom(Origin{Caller: s.by}, c))
}

// systemCaller may do everything.
var systemCaller = access.SystemCaller()

// DryRunFrom is DryRun of a command with an origin: it is refused if the caller may not do it.
func (s Sandbox) DryRunFrom(from Origin, c quota.Command) Outcome {
	before := s.ledger.now
	s.ledger.now.Wall = s.wallNow()
	defer func() { s.ledger.now = before }()
	return s.ledger.executeFrom(from, c, dryRun)
}

// Explain decides a request that the caller may make as a dry run does, and looks for a remedy if it is denied. As for
// DryRun, no other call may use the ledger meanwhile. It looks at no more than 10,000 held allocations and tries at
// most 500 changes.
func (s Sandbox) Explain(c quota.Allocate) Explained {
	if s.id == nil {
		return s.explain(c)
	}
	if out := s.DryRunFrom(Origin{Caller: s.by}, c); out.Refused != nil {
		return Explained{Outcome: out}
	}
	out := s.explain(c)
	out.Outcome, out.Levels = s.RedactOutcome(out.Outcome), s.shownLevels(out.Levels)
	return out
}

// explain names only holders that the caller sees; the rest is as the ledger knows it.
func (s Sandbox) explain(c quota.Allocate) Explained {
	out := Explained{Outcome: s.explainDecision(c)}
	if out.Decision != nil && !out.Repeated {
		page := levelsOf(s.ledger, c, out.Decision)
		out.Levels, out.LevelsCut = page.list, page.cut
	}
	return out
}

// explainDecision is explain without the levels.
func (s Sandbox) explainDecision(c quota.Allocate) Outcome {
	out := s.ledger.allocate(&c, dryRun)
	if d := out.Decision; d != nil && !d.Granted && !out.Repeated {
		explained := *d
		explained.Holders = blockersOf(s.Reader, newRequest(&c, d.Violations))
		explained.Remedy = findRemedyOfAny(s.ledger, explained.Violations, placersOf(s.ledger, c))
		out.Decision = &explained
	}
	return out
}

// ExplainID explains the decision about a request, for an allocation or a denial that the caller sees. For a held or
// recently ended allocation it returns the grant with its placements; for a waiting request, what blocks it now.
// Otherwise it returns the last remembered denial of that id, with its time; the remedy is computed for the present
// state, and is nil if the request would be granted or refused now. The error is NotFound if the id is unknown. As for
// DryRun, no other call may use the ledger meanwhile.
func (s Sandbox) ExplainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	d, a, at, err := s.explainID(id)
	if err != nil || s.id == nil {
		return d, a, at, err
	}
	if a != nil {
		seen := s.redacted(*a)
		a = &seen
	}
	return s.redactDecision(d), a, at, nil
}

// explainID is ExplainID with all that is known. Allocations and denials that the caller does not see do not exist.
func (s Sandbox) explainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	if err := checkID(id); err != nil {
		return quota.Decision{}, nil, nil, err
	}
	if a := s.ledger.allocations.findByID(id); a != nil {
		if info := s.ledger.currentInfo(a); s.sees(&info) {
			d, info := s.explainAllocation(a)
			return d, &info, nil, nil
		}
	}
	for _, e := range slices.Backward(s.ledger.journal.events) {
		if e.Kind == quota.EventDenied && e.ID == id && s.seesEvent(e) {
			decision := *e.Decision
			if now := s.explainDecision(*e.Request).Decision; now != nil {
				decision.Remedy, decision.Holders = now.Remedy, now.Holders
			}
			return decision, nil, &e.Stamp, nil
		}
	}
	return quota.Decision{}, nil, nil, unknownQuestion(id)
}

// explainAllocation is what blocks a waiting request now, or how another was granted.
func (s Sandbox) explainAllocation(a *Allocation) (quota.Decision, quota.AllocationInfo) {
	waits := a
	if resize := a.waitingResize(); a.ended == nil && resize != nil {
		waits = resize
	}
	if waits.isWaiting() {
		w := s.ledger.queue.waiterOf(waits)
		d, info := s.queued(w, true)
		d.Holders = blockersOf(s.Reader, blockedWaiter(w, d.Violations))
		return d, info
	}
	info := a.currentInfo()
	return quota.Decision{
		Granted: true, Preempted: info.Preempted, Placements: info.Claims, Alternative: info.Alternative,
	}, info
}

func unknownQuestion(id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id",
		"no allocation %q is held, waits or has ended lately, and no request of that id was denied lately", quota.Clip(id))
}

// judgedPerPage bounds how many requests one page shows: each is decided again, while all other calls wait.
const judgedPerPage = 100

// Waiting returns up to max waiting requests that the caller sees and that pass the filter, in the order of the queue,
// after a turn (nil: from the first), each with all that blocks it now. As for DryRun, no other call may use the ledger
// meanwhile. A page visits at most 10,000 requests and returns at most 100, so it may be short although more follow.
func (s Sandbox) Waiting(f quota.QueueFilter, after *quota.QueueTurn, max int) (quota.QueuePage, *quota.Error) {
	page, err := s.waiting(f, after, max)
	return s.shownQueue(page), err
}

func (s Sandbox) waiting(f quota.QueueFilter, after *quota.QueueTurn, max int) (quota.QueuePage, *quota.Error) {
	if (f.Node != "" || f.Resource != "") && f.Tree == "" {
		return quota.QueuePage{}, quota.Errorf(quota.Invalid, "tree", "a filter by node or resource needs a tree too")
	}
	from := rankqueue.First()
	if after != nil {
		from = rankqueue.Rank(*after).Next()
	}
	max = min(max, judgedPerPage)
	var page quota.QueuePage
	looked := 0
	for w := range s.ledger.queue.all.From(from) {
		if len(page.Requests) == max || looked == scanned {
			return page, nil
		}
		looked++
		turn := quota.QueueTurn(w.turn)
		page.Next = &turn
		if w.matchesQueueFilter(f) {
			d, info := s.queued(w, false)
			page.Requests = append(page.Requests, quota.QueuedInfo{Allocation: info, Decision: d})
		}
	}
	page.Next = nil
	return page, nil
}

// blockedPerPage bounds how many requests one page names blockers of.
const blockedPerPage = 20

// WaitingWithBlockers is Waiting that also tells who is in the way of each request. A page has at most 20 requests, and
// fewer if they are blocked by more than 100 limits. It visits at most 10,000 allocations.
func (s Sandbox) WaitingWithBlockers(
	f quota.QueueFilter, after *quota.QueueTurn, max int,
) (quota.QueuePage, *quota.Error) {
	page, err := s.waitingWithBlockers(f, after, max)
	return s.shownQueue(page), err
}

// waitingWithBlockers names only blockers that the caller sees.
func (s Sandbox) waitingWithBlockers(
	f quota.QueueFilter, after *quota.QueueTurn, max int,
) (quota.QueuePage, *quota.Error) {
	page, refused := s.waiting(f, after, min(max, blockedPerPage))
	if refused != nil {
		return page, refused
	}
	search := newBlockerSearch(s.Reader)
	var blocked []blockedRequest
	for i, q := range page.Requests {
		if len(search.levels) > maxEventViolations {
			turn := quota.QueueTurn(blocked[i-1].turn)
			page.Requests, page.Next = page.Requests[:i], &turn
			break
		}
		waits := s.ledger.allocations.findByID(q.Allocation.ID)
		if resize := waits.waitingResize(); resize != nil {
			waits = resize
		}
		blocked = append(blocked, blockedWaiter(s.ledger.queue.waiterOf(waits), q.Decision.Violations))
		search.addLevels(q.Decision.Violations)
	}
	search.findHolders()
	for i, b := range blocked {
		page.Requests[i].Decision.Holders = search.blockersOf(b)
	}
	return page, nil
}

// queued returns a waiting request, or the allocation of a waiting resize, with what blocks it.
func (s Sandbox) queued(w *waiter, remedy bool) (quota.Decision, quota.AllocationInfo) {
	l := s.ledger
	decision := *waitingDecision(l.previewWaiter(w))
	if remedy {
		decision.Remedy = findRemedyOfAny(l, decision.Violations, placersOfWaiter(w, l))
	}
	if w.isResize() {
		a, _ := l.allocations.held.Get(w.resizes)
		return decision, l.currentInfo(a)
	}
	return decision, l.currentInfo(w.record)
}

// shownQueue is a page of the queue as far as the caller may see the requests.
func (s Sandbox) shownQueue(page quota.QueuePage) quota.QueuePage {
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
