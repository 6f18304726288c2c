package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// byConfiguration is who has ended a request whose node or resource was taken away.
const byConfiguration = "configuration"

// requeue lets requests with claims in changed trees follow their nodes, ends those that the configuration now refuses, and
// makes everybody who waits for something in such a tree line up anew. It costs the length of the queue.
func (l *Ledger) requeue(changed map[string]bool) {
	all := l.queue.all.list()
	for _, w := range all {
		if t := w.line.tree; t != nil && changed[t.name] {
			l.intoLimbo(w)
		}
	}
	for _, w := range all {
		if claimsFromAny(&w.request, changed) && !l.follow(w) {
			l.drop(w, quota.Cancelled, byConfiguration)
		}
	}
	if l.queue.limbo.length > 0 {
		l.stir(&l.queue.limbo)
	}
}

// intoLimbo takes a request out of its line together with all others there: nobody comes to the head by that.
func (l *Ledger) intoLimbo(w *waiter) {
	ln := w.line
	if w.pressing {
		ln.pressing--
	}
	if ln.remove(w); ln.length == 0 {
		l.dropLine(ln)
	}
	w.line, w.need = &l.queue.limbo, 0
	l.queue.limbo.insert(w)
}

// follow gives a request the paths that its nodes have now; false if one is gone, or the request would be refused.
func (l *Ledger) follow(w *waiter) bool {
	request := w.request
	request.Claims = slices.Clone(request.Claims)
	for i := range w.record.claims {
		n := w.record.claims[i].at
		if t := l.trees[n.treeName]; t == nil || t.byPath[n.path] != n {
			return false
		}
		path := n.path
		if w.rests != nil && w.rests[i] != "" {
			path = quota.ChildPath(path, w.rests[i])
		}
		request.Claims[i].Node = path
	}
	a, refused := l.place(request)
	if refused != nil && refused.Kind != quota.Full {
		return false
	}
	if a != nil {
		l.settleWaiting(w, request, a)
	}
	return true
}

// settleWaiting makes the record of a request say where its nodes are now.
func (l *Ledger) settleWaiting(w *waiter, request quota.Allocate, placed *Allocation) {
	for i := range placed.claims {
		placed.claims[i].asked = w.record.claims[i].asked
	}
	l.replaceWaiting(w, placed.claims, *w.record.more.waiting)
	w.record.more.lease = placed.more.lease
	w.request, w.rests = request, nil
	w.anchor()
}

// requeueTrees is requeue after a change of a configuration.
func (l *Ledger) requeueTrees(steps []*succession) {
	if l.queue.all.length == 0 {
		return
	}
	changed := map[string]bool{}
	for _, s := range steps {
		if len(s.changes) > 0 {
			changed[s.changes[0].Tree] = true
		}
	}
	l.requeue(changed)
	if len(l.queue.full) > 0 {
		l.stir(l.queue.full[0])
	}
}
