package ledger

import "github.com/quorate/quorate/quota"

// addQueueTo writes what a record says of the queue.
func (m *particulars) addQueueTo(info *quota.AllocationInfo) {
	info.Priority = m.priority
	if w := m.waiting; w != nil {
		info.Waiting = &quota.WaitingInfo{Since: w.since.At, SinceWall: w.since.Wall, Until: w.until, KeepUntil: w.keepUntil}
	}
}

// info is a record as of now, with its place in the queue if it waits.
func (l *Ledger) info(a *Allocation) quota.AllocationInfo {
	info := a.current()
	if a.waits() {
		w := l.queue.waiterOf(a)
		info.Waiting.Position, info.Waiting.Line = w.line.before(w.turn)+1, w.line.String()
	}
	return info
}

// String says for people what the line waits for.
func (key lineKey) String() string {
	if key.tree == nil {
		return "the ledger"
	}
	what := "applications"
	switch {
	case key.resource != nil:
		what = key.resource.Name
	case key.isSoft():
		what = "room"
	}
	if key.node == nil {
		return what + " " + key.state + key.item + " of " + key.tree.name
	}
	return key.holder.String() + what + " at " + key.node.place()
}

// judgedPerPage bounds how many requests one page shows: each is judged anew, and nobody else has the ledger meanwhile.
const judgedPerPage = 100

// Waiting shows up to max requests that wait and pass the filter, in the order of the queue, after a turn (nil: from the
// first), each with all that is in its way now. As for DryRun, nobody else may use the ledger meanwhile. A page looks at
// no more than 10,000 requests and shows no more than 100, so it may be short although more follow.
func (v View) Waiting(f quota.QueueFilter, after *quota.QueueTurn, max int) (quota.QueuePage, *quota.Error) {
	if (f.Node != "" || f.Resource != "") && f.Tree == "" {
		return quota.QueuePage{}, quota.Errorf(quota.Invalid, "tree", "a filter by node or resource needs a tree too")
	}
	from := firstTurn
	if after != nil {
		from = turnAfter(*after)
	}
	max = min(max, judgedPerPage)
	var page quota.QueuePage
	looked := 0
	for w := range v.ledger.queue.all.from(from) {
		if len(page.Requests) == max || looked == scanned {
			return page, nil
		}
		looked++
		turn := w.turn
		page.Next = &turn
		if matchesQueueFilter(f, w.record) {
			d, info := v.queued(w, false)
			page.Requests = append(page.Requests, quota.QueuedInfo{Allocation: info, Decision: d})
		}
	}
	page.Next = nil
	return page, nil
}

func matchesQueueFilter(f quota.QueueFilter, a *Allocation) bool {
	if f.Tree == "" {
		return true
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.at.treeName == f.Tree && quota.IsWithin(c.placed.path, f.Node) && c.asksFor(f.Resource) {
			return true
		}
	}
	return false
}

// asksFor is true if the claim names a resource, or the name is empty.
func (c *placedClaim) asksFor(resource string) bool {
	if resource == "" {
		return true
	}
	for _, p := range c.amounts {
		if p.resource.Name == resource {
			return true
		}
	}
	return false
}

// queued is a request that waits with what is in its way.
func (v View) queued(w *waiter, remedy bool) (quota.Decision, quota.AllocationInfo) {
	l := v.ledger
	_, d, t, _ := l.judgeWaiter(w)
	t.rollback()
	decision := *waitingDecision(d)
	if remedy {
		decision.Remedy = l.remedy(func() (*Allocation, *quota.Error) { return l.placeWaiter(w) }, decision)
	}
	return decision, l.info(w.record)
}
