package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// queueing is what a list of claims has that is in the queue, or was granted from there. It may be one of several lists
// of a request, or a resize of a held allocation.
type queueing struct {
	waiter    *waiter // nil unless it waits
	turn      uint64  // 0 for a new request, which is behind all others
	line      line
	headSince quota.Instant
	// unclaimed is true for a grant that ends unless its caller comes for it.
	unclaimed bool
	// resizes is the held allocation that this would change, by the changes; nil for a request.
	resizes *allocation
	changes []quota.ClaimChange
}

// waiter is what all lists of a request share.
type waiter struct {
	record           *allocation // that readers see; of a resize that of the allocation
	until, keepUntil quota.Instant
}

// line is what a list waits for; the empty one is none. Those aside are larger than the whole limit, and block no other
// request.
type line struct {
	tree, node, resource string
	aside                bool
}

func (a *allocation) isBefore(other *allocation) bool {
	turn := func(a *allocation) uint64 { return a.turn - 1 } // that of a new request is the largest
	return cmp.Or(-cmp.Compare(a.asked.Priority, other.asked.Priority), cmp.Compare(turn(a), turn(other))) < 0
}

// isListOf is true for two lists of one request.
func (a *allocation) isListOf(other *allocation) bool {
	return a.waiter != nil && a.waiter == other.waiter
}

func (o *oracle) head(s line) *allocation {
	i := slices.IndexFunc(o.waiting, func(j *allocation) bool { return j.line == s })
	if i < 0 {
		return nil
	}
	return o.waiting[i]
}

// queued counts those in a line that are before a list.
func (o *oracle) queued(s line, a *allocation, withItsOwn bool) (n quota.Amount) {
	for _, other := range o.waiting {
		if other.line == s && other.isBefore(a) && (withItsOwn || !other.isListOf(a)) {
			n++
		}
	}
	return n
}

// overtaking is the violation of those in a line that what is decided now must not overtake.
func (o *oracle) overtaking(tree, path, resource string) []quota.Violation {
	s := line{tree, path, resource, false}
	head := o.head(s)
	if head == nil || !head.isBefore(o.deciding) || head.isListOf(o.deciding) {
		return nil
	}
	patience := cmp.Or(o.trees[tree].Overtake, quota.DefaultOvertake)
	if !o.queuesStrictly(tree, path) && o.now.At-head.headSince < quota.Instant(patience) {
		return nil
	}
	return []quota.Violation{{
		Kind: quota.OfQueue, Tree: tree, Node: path, Resource: resource, Used: o.queued(s, o.deciding, false),
	}}
}

func (o *oracle) queuesStrictly(tree, path string) bool {
	for _, at := range quotatest.Upwards(path) {
		if n := quotatest.FindNode(o.trees[tree], at); n != nil && n.Queueing != quota.InheritQueueing {
			return n.Queueing == quota.Strict
		}
	}
	return false
}

func lineOf(v quota.Violation) line {
	return line{v.Tree, v.Node, v.Resource, v.TooLarge || v.Requested > v.Limit}
}

// linesFor are the lines that a list may stay in: if it is larger than a whole limit, those aside.
func linesFor(violations []quota.Violation) (lines []line) {
	aside := slices.ContainsFunc(violations, func(v quota.Violation) bool { return lineOf(v).aside })
	for _, v := range violations {
		if l := lineOf(v); l.aside == aside {
			lines = append(lines, l)
		}
	}
	return lines
}

// enqueue lets those lists of a request wait that could be granted later; none if that is all of them.
func (o *oracle) enqueue(lists []*allocation, each [][]quota.Violation) bool {
	first := o.lastTurn
	w := &waiter{until: o.now.At + quota.Instant(cmp.Or(lists[0].asked.WaitFor, quota.MaxWait))}
	for i, a := range lists {
		if slices.ContainsFunc(each[i], func(v quota.Violation) bool { return v.Requested > v.Limit }) {
			continue
		}
		if a.waiter, a.turn, a.line = w, first+uint64(i)+1, lineOf(each[i][0]); w.record == nil {
			record := *a
			record.state, record.fence, record.granted, record.expires = quota.Waiting, 0, quota.Stamp{}, 0
			record.alternative = 0
			w.record = &record
			o.keep(w)
		}
		o.enter(a)
		o.lastTurn = first + uint64(len(lists))
	}
	return w.record != nil
}

func (o *oracle) enter(a *allocation) {
	o.waiting = append(o.waiting, a)
	slices.SortFunc(o.waiting, func(a, b *allocation) int {
		if a.isBefore(b) {
			return -1
		}
		return 1
	})
}

// keep keeps a request in the queue because its caller was there.
func (o *oracle) keep(w *waiter) { w.keepUntil = o.now.At + quota.Instant(keepSpan(w.record)) }

func keepSpan(a *allocation) quota.Span { return cmp.Or(a.asked.Keep, quota.DefaultKeep) }

// leave removes all lists of a request, or a resize.
func (o *oracle) leave(w *waiter) {
	o.waiting = slices.DeleteFunc(o.waiting, func(a *allocation) bool { return a.waiter == w })
}

// drop ends a request that waits, or a resize, which leaves its allocation as it is.
func (o *oracle) drop(w *waiter, end quota.State) {
	o.leave(w)
	if w.record.state != quota.Waiting {
		return
	}
	at := o.now
	w.record.ended, w.record.state = &at, end
	o.ends = append(o.ends, w.record)
	if end != quota.Cancelled {
		o.recordEvent(quota.Event{Kind: quota.EventDropped, ID: w.record.request.ID})
	}
}

// dropOverdue ends what has waited until its end, or for its caller.
func (o *oracle) dropOverdue(w *waiter) {
	if w.keepUntil < w.until {
		o.drop(w, quota.Abandoned)
		return
	}
	o.drop(w, quota.TimedOut)
}

// waiterOf is the request of an id that waits; nil if none does.
func (o *oracle) waiterOf(id string) *waiter {
	for _, a := range o.waiting {
		if a.request.ID == id && a.resizes == nil {
			return a.waiter
		}
	}
	return nil
}

// listsOf are the lists of a request that waits.
func (o *oracle) listsOf(w *waiter) []*allocation {
	return slices.DeleteFunc(slices.Clone(o.waiting), func(a *allocation) bool { return a.waiter != w })
}

// inTheWayOf lists what is in the way of all lists of a request.
func (o *oracle) inTheWayOf(w *waiter) (all []quota.Violation) {
	for _, a := range o.listsOf(w) {
		all = append(all, o.blockersOf(a)...)
	}
	return all
}

// blockersOf is what is in the way of one list.
func (o *oracle) blockersOf(a *allocation) []quota.Violation {
	if a.resizes != nil {
		return o.risesOf(a)
	}
	before := o.savePlaces()
	list, _ := o.admit(a)
	o.restorePlaces(before)
	for i := range list {
		list[i].Alternative = a.alternative
	}
	return list
}

// settle does what freed room allows, until nothing changes any more.
func (o *oracle) settle() {
	for again := true; again; {
		again = slices.ContainsFunc(slices.Clone(o.waiting), o.retry)
	}
}

// retry grants a list that waits, or finds the line that it stands in; true if that changed something.
func (o *oracle) retry(a *allocation) bool {
	o.noteHeads()
	list := o.blockersOf(a)
	switch {
	case len(list) == 0 && a.resizes != nil:
		o.replaceClaims(a.resizes, a)
	case len(list) == 0:
		o.grantFromQueue(a)
	case !slices.Contains(linesFor(list), a.line):
		a.line = linesFor(list)[0]
	default:
		return false
	}
	o.noteHeads()
	return true
}

func (o *oracle) noteHeads() {
	for _, a := range o.waiting {
		if a.headSince == 0 && o.head(a.line) == a && a.line != (line{}) && !a.line.aside {
			a.headSince = o.now.At
		}
	}
}

func (o *oracle) grantFromQueue(waited *allocation) {
	o.leave(waited.waiter)
	a := o.newAllocation(waited.asked, waited.claimed)
	a.whole, a.alternative, a.turn = waited.whole, waited.alternative, waited.turn
	before := o.savePlaces()
	_, t := o.admit(a)
	o.grant(a, t, before)
	a = o.find(a.request.ID)
	keep := keepSpan(a)
	if a.ttl > 0 {
		keep = min(keep, a.ttl)
	}
	a.unclaimed, a.expires = true, o.now.At+quota.Instant(keep)
}

// collect notes that the caller knows of a grant from the queue.
func (o *oracle) collect(a *allocation) {
	if a.unclaimed {
		a.unclaimed, a.expires = false, 0
		a.begin(o.now)
	}
}

// requeue takes those that wait in a tree that was replaced out of their lines.
func (o *oracle) requeue(before map[string]quota.TreeSpec) {
	for _, a := range o.waiting {
		if tree := a.line.tree; fmt.Sprint(before[tree]) != fmt.Sprint(o.trees[tree]) {
			a.line = line{}
		}
	}
}

// waitsUntil is when a list leaves the queue by itself.
func (w *waiter) waitsUntil() quota.Instant {
	if w.keepUntil == 0 { // a resize, which needs no caller
		return w.until
	}
	return min(w.until, w.keepUntil)
}

// byTurn are all lists in the order in which they came.
func (o *oracle) byTurn() []*allocation {
	list := slices.Clone(o.waiting)
	slices.SortFunc(list, func(a, b *allocation) int { return cmp.Compare(a.turn, b.turn) })
	return list
}
