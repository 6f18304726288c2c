package ledger

import (
	"maps"

	"github.com/quorate/quorate/quota"
)

// A dry run of a change of a large tree takes tens of milliseconds and more. It is carried out on a copy of the ledger unless that
// costs more than it saves.
const (
	// minCopiedCells is the size of the trees, nodes times resources, below which a dry run takes a millisecond or two.
	minCopiedCells = 1_000
	// maxCopied is how many allocations and items a copy may have.
	maxCopied = 200_000
)

// WorthCopying tells whether dry runs of changes of the configuration should use CopyForPlans.
func (v View) WorthCopying() bool {
	l := v.ledger
	return v.AllCells() > minCopiedCells && l.allocations.held.Len()+l.queue.all.length+l.inventory.items.Len() <= maxCopied
}

// CopyForPlans makes a ledger of an image that answers dry runs of changes of the configuration as the original would, in every
// byte. It knows of ended allocations only what those ask about, and must not be used for anything else.
func CopyForPlans(b quota.Bounds, level uint32, image *Image) (*Ledger, error) {
	ld := NewLoader(b, image.Header)
	l := ld.ledger
	l.SetLevel(level)
	for _, t := range image.trees {
		if err := ld.AddTree(t); err != nil {
			return nil, err
		}
	}
	for _, r := range image.revisions {
		l.history.addRevision(r)
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
	l.journal.events = image.events
	l.rememberEnded(image)
	return l, ld.lineUp()
}

// rememberEnded files the ended allocations whose ids were denied lately: what a change would admit leaves them out.
func (l *Ledger) rememberEnded(image *Image) {
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
	maps.DeleteFunc(ended, func(id string, _ *Allocation) bool { return l.allocations.byID[id] != nil })
	maps.Copy(l.allocations.byID, ended)
}
