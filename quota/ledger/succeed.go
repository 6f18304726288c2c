package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// Header is what an image of the ledger would begin with now.
func (l *Ledger) Header() Header {
	return Header{
		Now: l.now, Revision: l.history.revision, Fence: l.allocations.fence, NodeID: l.forest.nodeID, Seat: l.allocations.seat, Event: l.journal.lastEvent,
		Turn: l.inventory.turn, Arrival: l.queue.arrival, TreeVersion: l.forest.version,
	}
}

// Succeed lets a ledger that was loaded from a backup take the place of another one. Nothing that only grows goes back:
// time, revisions and all numbers go on from whichever is further, and fences from gap beyond that, so that none is given
// again that somebody got between the backup and the loss of that cluster.
//
// Leases have their whole time again, and requests in the queue their time for a sign of their caller: nobody could
// renew them here, and what was renewed since the backup is not known any more.
func (l *Ledger) Succeed(former Header, gap uint64) {
	l.now = quota.Stamp{At: max(l.now.At, former.Now.At), Wall: max(l.now.Wall, former.Now.Wall)}
	l.history.revision, l.journal.lastEvent = max(l.history.revision, former.Revision), max(l.journal.lastEvent, former.Event)
	l.forest.nodeID, l.allocations.seat, l.inventory.turn = max(l.forest.nodeID, former.NodeID), max(l.allocations.seat, former.Seat), max(l.inventory.turn, former.Turn)
	l.queue.arrival, l.forest.version = max(l.queue.arrival, former.Arrival), max(l.forest.version, former.TreeVersion)
	l.allocations.fence = max(l.allocations.fence, former.Fence) + gap
	l.prolong()
	l.selfCheck()
}

// prolong begins the time of all leases and of all waiting requests anew. A lease that has to give way keeps its end, if
// that is later than now.
func (l *Ledger) prolong() {
	var leases []*Allocation
	for _, a := range l.allocations.held.All() {
		if b := a.lease(); b.expires != 0 && b.revokedBy == "" {
			leases = append(leases, a)
		}
	}
	for _, a := range leases {
		b := a.lease()
		b.begin(l.now)
		l.refile(a.withLease(b))
	}
	for _, w := range slices.Collect(l.queue.all.from(firstTurn)) {
		l.queue.sign(w)
	}
}
