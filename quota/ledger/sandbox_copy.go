package ledger

import (
	"github.com/quorate/quorate/quota"
)

// A dry run of a change of a large tree takes tens of milliseconds or more. It uses a copy of the ledger unless the
// copy costs more than it saves.
const (
	// minCopiedCells is the size of the trees, nodes times resources, below which a dry run takes a millisecond or two.
	minCopiedCells = 1_000
	// maxCopied is how many allocations and items a copy may have.
	maxCopied = 200_000
)

// WorthCopying reports whether dry runs of configuration changes should use CopyForPlans.
func (r Reader) WorthCopying() bool { return r.AllCells() > minCopiedCells && r.isCopyable() }

// NeedsCopy reports whether [Sandbox.WhatIf] must use CopyForPlans: there are requests to evaluate, or it is worth it.
func (r Reader) NeedsCopy() bool {
	return r.isCopyable() && (r.ledger.queue.all.Len() > 0 || r.ledger.journal.hasDenial() || r.WorthCopying())
}

func (r Reader) isCopyable() bool {
	l := r.ledger
	return l.allocations.held.Len()+l.queue.all.Len()+l.inventory.items.Len() <= maxCopied
}

// CopyForPlans builds a ledger from a snapshot that answers dry runs of configuration changes exactly as the original
// would, and carries one change out as the original would. It knows only those ended allocations that such dry runs ask
// about, and must not be used for anything else.
func CopyForPlans(b quota.Bounds, format uint32, image *Snapshot) (*Ledger, error) {
	ld := NewRestorer(b, image.Header)
	l := ld.ledger
	l.SetFormat(format)
	l.book = image.book
	for _, p := range image.policies {
		if err := ld.AddPolicy(p); err != nil {
			return nil, err
		}
	}
	for _, t := range image.trees {
		if err := ld.AddTree(t); err != nil {
			return nil, err
		}
	}
	for _, r := range image.revisions {
		l.history.addRevision(r)
	}
	for _, s := range image.scheduled {
		if err := ld.AddScheduled(s); err != nil {
			return nil, err
		}
	}
	for it := range image.Items() {
		if err := ld.AddItem(it); err != nil {
			return nil, err
		}
	}
	for a := range image.Held() {
		if err := ld.AddHeld(a); err != nil {
			return nil, err
		}
	}
	for w := range image.Waiting() {
		if err := ld.AddWaiting(w); err != nil {
			return nil, err
		}
	}
	for _, r := range image.requests {
		if err := ld.AddLimitRequest(r); err != nil {
			return nil, err
		}
	}
	for _, e := range image.events {
		l.journal.addEvent(e)
	}
	l.allocations.rememberEnded(image)
	if err := ld.requeueAll(); err != nil {
		return nil, err
	}
	planner{l}.reserveIDs()
	l.isCopy, l.restoring = true, false
	return l, nil
}

// rememberEnded stores the ended allocations whose ids were denied recently, because the effects of a change leave them
// out.
func (s *allocations) rememberEnded(image *Snapshot) {
	denied := map[string]bool{}
	for _, e := range image.events {
		if e.Kind == quota.EventDenied {
			denied[e.ID] = true
		}
	}
	ended := map[string]*Allocation{}
	if len(denied) > 0 {
		for _, a := range image.ended.All() {
			if denied[a.id] {
				ended[a.id] = a // the latest of an id
			}
		}
	}
	for id, a := range ended { // an index has no order
		if s.byID.Find(id) == nil {
			s.byID.Put(a)
		}
	}
}
