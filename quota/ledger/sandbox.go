package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/explain"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Sandbox is a ledger with exclusive access: it answers questions by changing the state and reverting the change. Being
// a type of its own, it keeps readers that share the ledger from calling these methods.
type Sandbox struct {
	read.Reader
	state *state.State // that of the reader
	// by asks: the server itself, or the caller of ReaderOf.
	caller *access.Caller
}

func newSandbox(s *state.State) Sandbox {
	s.Forest.ForgetUses()
	return Sandbox{read.New(s, nil), s, &systemCaller}
}

// ReaderOf is the sandbox of a caller: its answers have only what the caller may see, see [Reader.ReaderOf].
func (s Sandbox) ReaderOf(caller *access.Caller) (Sandbox, *quota.Error) {
	r, err := s.Reader.ReaderOf(caller)
	return Sandbox{r, s.state, caller}, err
}

// At is that of a Reader.
func (s Sandbox) At(wall int64) Sandbox { return Sandbox{s.Reader.At(wall), s.state, s.caller} }

// AsOf is that of a Reader. What the sandbox decides is still decided at the time of the last command.
func (s Sandbox) AsOf(at quota.Instant) Sandbox { return Sandbox{s.Reader.AsOf(at), s.state, s.caller} }

// DryRun decides a command of the caller on the present state, as Apply would, and leaves the state unchanged. A
// command other than Allocate and a change of configuration returns the present state of its object.
func (s Sandbox) DryRun(c quota.Command) state.Outcome {
	return s.RedactOutcome(s.DryRunFrom(state.Origin{Caller: s.caller}, c))
}

// systemCaller may do everything.
var systemCaller = access.SystemCaller()

// DryRunFrom is DryRun of a command with an origin: it is refused if the caller may not do it.
func (s Sandbox) DryRunFrom(from state.Origin, c quota.Command) state.Outcome {
	before := s.state.Now
	s.state.Now.Wall = s.WallNow()
	defer func() { s.state.Now = before }()
	return executeFrom(s.state, from, c, state.DryRun)
}

// Explain decides a request that the caller may make as a dry run does, and looks for a remedy if it is denied. As for
// DryRun, no other call may use the ledger meanwhile. It looks at no more than 10,000 held allocations and decides at
// most 100 trials in each of two searches for each of the at most 8 alternatives.
func (s Sandbox) Explain(c quota.Allocate) explain.Explained {
	if read.IdentityOf(s.Reader) == nil {
		return s.explain(c)
	}
	if out := s.DryRunFrom(state.Origin{Caller: s.caller}, c); out.Refused != nil {
		return explain.Explained{Outcome: out}
	}
	out := s.explain(c)
	out.Outcome, out.Levels = s.RedactOutcome(out.Outcome), s.ShownLevels(out.Levels)
	return out
}

// explain names only holders that the caller sees; the rest is as the ledger knows it.
func (s Sandbox) explain(c quota.Allocate) explain.Explained {
	out := explain.Explained{Outcome: s.explainDecision(c)}
	if out.Decision != nil && !out.Repeated {
		page := explain.LevelsOf(s.state, c, out.Decision)
		out.Levels, out.LevelsCut = page.List, page.Cut
	}
	return out
}

func (s Sandbox) explainDecision(c quota.Allocate) state.Outcome {
	out := admit.Allocate(s.state, &c, state.DryRun)
	if d := out.Decision; d != nil && !d.Granted && !out.Repeated {
		explained := *d
		explained.Holders = explain.BlockersOf(s.Reader, explain.NewRequest(&c, d.Violations))
		explained.Remedy = explain.FindRemedyOfAny(s.state, explained.Violations, explain.PlacersOf(s.state, c))
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
	if err != nil || read.IdentityOf(s.Reader) == nil {
		return d, a, at, err
	}
	if a != nil {
		seen := s.Redacted(*a)
		a = &seen
	}
	return s.RedactDecision(d), a, at, nil
}

// explainID is ExplainID with all that is known. What the caller does not see does not exist.
func (s Sandbox) explainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	if err := admit.CheckID(id); err != nil {
		return quota.Decision{}, nil, nil, err
	}
	if a := s.state.Allocations.FindByID(id); a != nil {
		if info := admit.CurrentInfo(s.state, a); s.Sees(&info) {
			d, info := s.explainAllocation(a)
			return d, &info, nil, nil
		}
	}
	for _, e := range slices.Backward(s.state.Journal.Events) {
		if e.Kind == quota.EventDenied && e.ID == id && s.SeesEvent(e) {
			decision := *e.Decision
			if now := s.explainDecision(*e.Request).Decision; now != nil {
				decision.Remedy, decision.Holders = now.Remedy, now.Holders
			}
			return decision, nil, &e.Stamp, nil
		}
	}
	return quota.Decision{}, nil, nil, unknownQuestion(id)
}

func (s Sandbox) explainAllocation(a *state.Allocation) (quota.Decision, quota.AllocationInfo) {
	waits := a
	if resize := a.WaitingResize(); a.Ended == nil && resize != nil {
		waits = resize
	}
	if waits.IsWaiting() {
		w := s.state.Queue.WaiterOf(waits)
		d, info := s.queued(w, true)
		d.Holders = explain.BlockersOf(s.Reader, explain.BlockedWaiter(w, d.Violations))
		return d, info
	}
	info := a.CurrentInfo()
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
	for w := range s.state.Queue.All.From(from) {
		if len(page.Requests) == max || looked == read.Scanned {
			return page, nil
		}
		looked++
		turn := quota.QueueTurn(w.Turn)
		page.Next = &turn
		if w.MatchesQueueFilter(f) {
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
	search := explain.NewBlockerSearch(s.Reader)
	var blocked []explain.BlockedRequest
	for i, q := range page.Requests {
		if len(search.Levels) > state.MaxEventViolations {
			turn := quota.QueueTurn(blocked[i-1].Turn)
			page.Requests, page.Next = page.Requests[:i], &turn
			break
		}
		waits := s.state.Allocations.FindByID(q.Allocation.ID)
		if resize := waits.WaitingResize(); resize != nil {
			waits = resize
		}
		blocked = append(blocked, explain.BlockedWaiter(s.state.Queue.WaiterOf(waits), q.Decision.Violations))
		search.AddLevels(q.Decision.Violations)
	}
	search.FindHolders()
	for i, b := range blocked {
		page.Requests[i].Decision.Holders = search.BlockersOf(b)
	}
	return page, nil
}

// queued returns the allocation of a waiting resize too.
func (s Sandbox) queued(w *state.Waiter, remedy bool) (quota.Decision, quota.AllocationInfo) {
	st := s.state
	decision := *state.WaitingDecision(admit.PreviewWaiter(st, w))
	if remedy {
		decision.Remedy = explain.FindRemedyOfAny(st, decision.Violations, explain.PlacersOfWaiter(w, st))
	}
	if w.IsResize() {
		a, _ := st.Allocations.Held.Get(w.Resizes)
		return decision, admit.CurrentInfo(st, a)
	}
	return decision, admit.CurrentInfo(st, w.Record)
}

func (s Sandbox) shownQueue(page quota.QueuePage) quota.QueuePage {
	if read.IdentityOf(s.Reader) == nil {
		return page
	}
	var seen []quota.QueuedInfo
	for _, q := range page.Requests {
		isResize := q.Allocation.Resize != nil
		if !s.Sees(&q.Allocation) {
			continue
		}
		q.Allocation, q.Decision = s.Redacted(q.Allocation), s.RedactDecision(q.Decision)
		if !isResize || q.Allocation.Resize != nil {
			seen = append(seen, q)
		}
	}
	page.Requests = seen
	return page
}
