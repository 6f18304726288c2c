package read

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// shownReason is a reason as far as the caller may know it, who reads the holders of the allocation or owns it. Without
// the right to read holders where capacity was missing, it has what the allocation gave, and nothing of the request
// that needed it.
func (r Reader) shownReason(reason *quota.Reason, readsHolders bool) *quota.Reason {
	if r.id == nil || reason == nil {
		return reason
	}
	if reason.Kind == quota.ByRelease {
		shown := *reason
		if !readsHolders {
			shown.Actor = ""
		}
		return &shown
	}
	n := r.state.Forest.NearestNode(reason.Tree, reason.Node)
	if r.MayAt(access.HoldersRead, n) {
		return reason
	}
	shown := r.reasonAt(n, reason)
	shown.Share, shown.RequestPriority = "", 0
	for i := range shown.Amounts {
		shown.Amounts[i].Requested, shown.Amounts[i].Missing = 0, 0
	}
	return shown
}

// hiddenVictims keeps how many there are, where, and what they gave.
func (r Reader) hiddenVictims(list []quota.Preempted) []quota.Preempted {
	hidden := slices.Clone(list)
	for i := range hidden {
		p := &hidden[i]
		p.ID = ""
		if p.Reason != nil {
			p.Reason = r.reasonAt(r.state.Forest.NearestNode(p.Reason.Tree, p.Reason.Node), p.Reason)
			p.Reason.Borrower, p.Reason.Priority = "", 0
		}
	}
	return hidden
}

func (r Reader) reasonAt(n *state.Node, reason *quota.Reason) *quota.Reason {
	shown := *reason
	shown.Amounts = slices.Clone(reason.Amounts)
	see := quota.SeeNothing // in a tree that does not exist any more
	if n != nil {
		see = r.seenOf(n)
	}
	if see == quota.SeeNothing {
		shown.Node = ""
	}
	if see != quota.SeeTotals {
		shown.Actor, shown.Text = "", ""
		for i := range shown.Amounts {
			shown.Amounts[i].Missing = 0
		}
	}
	return &shown
}
