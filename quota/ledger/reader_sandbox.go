package ledger

import (
	"slices"

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

// RedactOutcome leaves out of an outcome what the caller may not see.
func (r Reader) RedactOutcome(o Outcome) Outcome {
	if r.id == nil {
		return o
	}
	if d := o.Decision; d != nil && (len(d.Preempted) > 0 || len(d.Violations) > 0) {
		seen := r.redactDecision(*d)
		o.Decision = &seen
	}
	if c := o.Configuration; c != nil && (c.Effects != nil || len(c.Over) > 0) {
		seen := r.redactConfiguration(*c)
		o.Configuration = &seen
	}
	if a := o.Allocation; a != nil && !r.id.Is(a.owner) {
		o.Allocation = a.withoutData()
	}
	o.Items = r.shownItems(o.Items)
	if len(o.Restored) > 0 {
		o.Restored = slices.DeleteFunc(slices.Clone(o.Restored), func(id string) bool {
			info, err := r.view.Allocation(id)
			return err != nil || !r.sees(&info)
		})
	}
	if o.Refused != nil && o.Refused.Kind == quota.PolicyBreach {
		o.Refused = r.redactBreaches(o.Refused)
	}
	return o
}

// redactConfiguration hides what a change means at places where the caller may not read usage, and for whom.
func (r Reader) redactConfiguration(c quota.Configuration) quota.Configuration {
	c.Over = slices.DeleteFunc(slices.Clone(c.Over), func(o quota.Overuse) bool {
		verb := access.UsageRead
		if o.Holder.Name != "" {
			verb = access.HoldersRead
		}
		return !r.May(verb, o.Tree, o.Node)
	})
	if c.Effects == nil {
		return c
	}
	effects := *c.Effects
	effects.Rooms = slices.DeleteFunc(slices.Clone(effects.Rooms), func(room quota.RoomChange) bool {
		return !r.May(access.UsageRead, room.Tree, room.Node)
	})
	if !r.May(access.HoldersRead, "", "") {
		effects.Admitted = nil
	}
	c.Effects = &effects
	return c
}

// redactBreaches leaves out the limits in rules of nodes whose configuration the caller may not read, and the nodes
// themselves unless they are above others that it sees.
func (r Reader) redactBreaches(err *quota.Error) *quota.Error {
	hidden := func(b quota.Breach) bool { return !r.May(access.ConfigRead, b.Tree, b.Node) }
	if !slices.ContainsFunc(err.Breaches, hidden) {
		return err
	}
	seen := slices.Clone(err.Breaches)
	for i := range seen {
		b := &seen[i]
		if !hidden(*b) {
			continue
		}
		b.Text = "a rule does not allow it; ask an administrator of that node"
		if n := r.view.ledger.forest.nearestNode(b.Tree, b.Node); n == nil || n.path != b.Node || !r.seesBelow(n) {
			b.Node, b.Text = "", "a rule of another node does not allow it; ask an administrator of the tree"
		}
	}
	return quota.NewBreachError(seen)
}

// redactDecision hides the names of other allocations, who may set limits where the caller may not read the
// configuration, and of the levels above what their tree does not show.
func (r Reader) redactDecision(d quota.Decision) quota.Decision {
	hidden := func(tree, node string) bool { return !r.May(access.HoldersRead, tree, node) }
	if slices.ContainsFunc(d.Preempted, func(p quota.Preempted) bool { return hidden(p.Tree, p.Node) }) {
		d.Preempted = r.hiddenVictims(d.Preempted)
	}
	d.Holders = r.shownHolders(d.Holders)
	shown := r.shownViolations(d.Violations)
	if d.Remedy == nil {
		d.Violations = shown
		return d
	}
	remedy := *d.Remedy
	if slices.ContainsFunc(d.Violations, func(v quota.Violation) bool { return hidden(v.Tree, v.Node) }) {
		remedy.Releases = nil
	}
	remedy.Raises = slices.Clone(remedy.Raises)
	for i := range remedy.Raises {
		if raise := &remedy.Raises[i]; !r.May(access.ConfigRead, raise.Tree, raise.Node) {
			raise.Setters = nil
		}
	}
	if slices.ContainsFunc(shown, func(v quota.Violation) bool { return v.Seen != quota.SeeTotals }) {
		remedy.Raises = nil // together they would say what the violations do not
	}
	d.Violations, d.Remedy = shown, &remedy
	return d
}

// shownViolations are the violations as far as the caller may see the levels at which they are.
func (r Reader) shownViolations(list []quota.Violation) []quota.Violation {
	var shown []quota.Violation
	for i, v := range list {
		see := r.seenOf(r.view.ledger.forest.nearestNode(v.Tree, v.Node))
		if see == quota.SeeTotals {
			continue
		}
		if shown == nil {
			shown = slices.Clone(list)
		}
		shown[i] = v.ShownAs(see)
	}
	if shown == nil {
		return list
	}
	return shown
}
