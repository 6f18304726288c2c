package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/image"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// supersede prepares a restored state to replace another one, as [Ledger.Supersede] promises.
func supersede(s *state.State, former image.Header, gap uint64) {
	s.Now = quota.Stamp{At: max(s.Now.At, former.Now.At), Wall: max(s.Now.Wall, former.Now.Wall)}
	s.Civil.ContinueFrom(max(s.Civil.Now, former.Civil), s.Now.At)
	s.History.Revision, s.Journal.LastEvent = max(s.History.Revision, former.Revision),
		max(s.Journal.LastEvent, former.Event)
	s.Forest.NodeID, s.Allocations.LastArrivalSeq, s.Inventory.LastStateSeq = max(s.Forest.NodeID, former.NodeID),
		max(s.Allocations.LastArrivalSeq, former.ArrivalSeq), max(s.Inventory.LastStateSeq, former.StateSeq)
	s.Queue.Arrival, s.Forest.Version = max(s.Queue.Arrival, former.Arrival), max(s.Forest.Version, former.TreeVersion)
	s.Allocations.Fence = max(s.Allocations.Fence, former.Fence) + gap
	s.Requests.Last = max(s.Requests.Last, former.LimitRequest)
	s.Webhooks.Version = max(s.Webhooks.Version, former.Webhook)
	s.Webhooks.Restart()
	s.Calendar.Last = max(s.Calendar.Last, former.Scheduled)
	s.Requests.CloseAll("the state was replaced by a backup; ask again")
	extendDeadlines(s)
	selfCheck(s)
}

// extendDeadlines restarts the TTL of all leases and the keep spans of all waiting requests. A lease under revocation
// keeps its end, if that is in the future.
func extendDeadlines(s *state.State) {
	var leases []*state.Allocation
	for _, a := range s.Allocations.Held.All() {
		if b := a.Lease(); b.Expires != 0 && b.RevokedBy == "" {
			leases = append(leases, a)
		}
	}
	for _, a := range leases {
		b := a.Lease()
		if b.Begin(s.Now); b.TTL == 0 {
			b.Expires = s.Now.At + quota.Instant(cmp.Or(a.More.Keep, quota.DefaultKeep))
		}
		admit.ReplaceLease(s, a.WithLease(b))
	}
	for _, w := range slices.Collect(s.Queue.All.All()) {
		admit.Touch(&s.Queue, w)
	}
}
