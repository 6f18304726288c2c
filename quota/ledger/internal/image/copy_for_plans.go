package image

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// CopyForPlans builds a state from a snapshot that answers dry runs of configuration changes exactly as the original
// would, and carries one change out as the original would. It knows only those ended allocations that such dry runs ask
// about, and must not be used for anything else.
func CopyForPlans(b quota.Bounds, format uint32, snapshot *Snapshot) (*state.State, error) {
	ld := NewRestorer(b, snapshot.Header)
	s := ld.state
	s.Format = format
	s.Book = snapshot.book
	for _, p := range snapshot.policies {
		if err := ld.AddPolicy(p); err != nil {
			return nil, err
		}
	}
	for _, t := range snapshot.trees {
		if err := ld.AddTree(t); err != nil {
			return nil, err
		}
	}
	for _, r := range snapshot.revisions {
		s.History.AddRevision(r)
	}
	for _, scheduled := range snapshot.scheduled {
		if err := ld.AddScheduled(scheduled); err != nil {
			return nil, err
		}
	}
	for it := range snapshot.Items() {
		if err := ld.AddItem(it); err != nil {
			return nil, err
		}
	}
	for a := range snapshot.Held() {
		if err := ld.AddHeld(a); err != nil {
			return nil, err
		}
	}
	for w := range snapshot.Waiting() {
		if err := ld.AddWaiting(w); err != nil {
			return nil, err
		}
	}
	for _, r := range snapshot.requests {
		if err := ld.AddLimitRequest(r); err != nil {
			return nil, err
		}
	}
	for _, e := range snapshot.events {
		s.Journal.AddEvent(e)
	}
	rememberEnded(&s.Allocations, snapshot)
	if err := ld.requeueAll(); err != nil {
		return nil, err
	}
	s.IsCopy, s.Restoring = true, false
	return s, nil
}

// rememberEnded stores the ended allocations whose ids were denied recently, because the effects of a change leave them
// out.
func rememberEnded(s *state.Allocations, snapshot *Snapshot) {
	denied := map[string]bool{}
	for _, e := range snapshot.events {
		if e.Kind == quota.EventDenied {
			denied[e.ID] = true
		}
	}
	ended := map[string]*state.Allocation{}
	if len(denied) > 0 {
		for _, a := range snapshot.ended.All() {
			if denied[a.ID()] {
				ended[a.ID()] = a // the latest of an id
			}
		}
	}
	for id, a := range ended { // an index has no order
		if s.ByID.Find(id) == nil {
			s.ByID.Put(a)
		}
	}
}
