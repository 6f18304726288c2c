package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// byConfiguration is who has ended a request whose node or resource was taken away.
const byConfiguration = "configuration"

// requeue lets requests with claims in changed trees follow their nodes, ends those that the configuration now refuses, and
// makes everybody who waits for something in such a tree line up anew. It costs the length of the queue.
func (pl planner) requeue(changed map[string]bool) {
	all := pl.queue.all.list()
	for _, w := range all {
		if t := w.line.tree; t != nil && changed[t.name] {
			pl.queue.intoLimbo(w)
		}
	}
	for _, w := range all {
		if claimsFromAny(&w.request, changed) && !pl.follow(w) {
			pl.drop(w, quota.Cancelled, byConfiguration)
		}
	}
	if pl.queue.limbo.length > 0 {
		pl.queue.stir(&pl.queue.limbo)
	}
}

// intoLimbo takes a request out of its line together with all others there: nobody comes to the head by that.
func (q *waitQueue) intoLimbo(w *waiter) {
	ln := w.line
	if w.pressing {
		ln.pressing--
	}
	if ln.remove(w); ln.length == 0 {
		q.dropLine(ln)
	}
	w.line, w.need = &q.limbo, 0
	q.limbo.insert(w)
}

// follow gives a request the paths that its nodes have now; false if one is gone, or the request would be refused.
func (pl planner) follow(w *waiter) bool {
	request := w.request
	request.Claims = slices.Clone(request.Claims)
	for i := range w.record.claims {
		n := w.record.claims[i].at
		if t := pl.forest.trees[n.treeName]; t == nil || t.byPath[n.path] != n {
			return false
		}
		path := n.path
		if w.rests != nil && w.rests[i] != "" {
			path = quota.ChildPath(path, w.rests[i])
		}
		request.Claims[i].Node = path
	}
	a, refused := pl.place(request)
	if refused != nil && refused.Kind != quota.Full {
		return false
	}
	if a != nil {
		pl.settleWaiting(w, request, a)
	}
	return true
}

// settleWaiting makes the record of a request say where its nodes are now.
func (pl planner) settleWaiting(w *waiter, request quota.Allocate, placed *Allocation) {
	for i := range placed.claims {
		placed.claims[i].asked = w.record.claims[i].asked
	}
	pl.queue.replaceWaiting(w, placed.claims, *w.record.more.waiting)
	w.record.more.lease = placed.more.lease
	w.request, w.rests = request, nil
	w.anchor()
}

// requeueTrees is requeue after a change of a configuration.
func (pl planner) requeueTrees(steps []*succession) {
	if pl.queue.all.length == 0 {
		return
	}
	changed := map[string]bool{}
	for _, s := range steps {
		if len(s.changes) > 0 {
			changed[s.changes[0].Tree] = true
		}
	}
	pl.requeue(changed)
	if len(pl.queue.full) > 0 {
		pl.queue.stir(pl.queue.full[0])
	}
}
