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
