package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// claimItems are the items of a claim.
type claimItems struct {
	picks []quota.Pick // as they were asked for
	held  []heldItem   // by resource and name
}

// heldItem is an item in an allocation.
type heldItem struct {
	resource, name string
	// is the item as it was when the record was made; nil in a tombstone.
	is *item
}

// picks are what the claim has asked for.
func (c *placedClaim) picks() []quota.Pick {
	if c.more == nil || c.more.items == nil {
		return nil
	}
	return c.more.items.picks
}

// held are the items that the claim holds, or held in the end.
func (c *placedClaim) held() []heldItem {
	if c.more == nil || c.more.items == nil {
		return nil
	}
	return c.more.items.held
}

// setItems gives the claim a list of items of its own.
func (c *placedClaim) setItems(picks []quota.Pick, held []heldItem) {
	more := claimParticulars{}
	if c.more != nil {
		more = *c.more
	}
	more.items = &claimItems{picks: picks, held: held}
	c.more = &more
}

func (a *Allocation) wantsItems() bool {
	for i := range a.claims {
		if len(a.claims[i].picks()) > 0 {
			return true
		}
	}
	return false
}

// plain are the amounts that are not those of items.
func (c *placedClaim) plain() []placedAmount {
	if len(c.picks()) == 0 {
		return c.amounts
	}
	return slices.DeleteFunc(slices.Clone(c.amounts), func(p placedAmount) bool { return p.resource.Unit == quota.Items })
}

func samePick(p, other quota.Pick) bool {
	return p.Resource == other.Resource && p.Count == other.Count && p.State == other.State && p.HeldState == other.HeldState && slices.Equal(p.Names, other.Names)
}

// pickOf is what has asked for an item that the claim holds.
func (c *placedClaim) pickOf(resource string) quota.Pick {
	i, found := slices.BinarySearchFunc(c.picks(), resource, func(p quota.Pick, name string) int { return strings.Compare(p.Resource, name) })
	if !found {
		return quota.Pick{}
	}
	return c.picks()[i]
}

// unusedItemState is that of an item that a reservation gives back which was never confirmed: the one in which it was found.
// If that is not known, it is taken for used.
func unusedItemState(p quota.Pick, s *quota.ItemSpec) string {
	return cmp.Or(p.WantedState(), s.ExpiredState())
}

func compareHeld(a, b heldItem) int {
	return cmp.Or(strings.Compare(a.resource, b.resource), strings.Compare(a.name, b.name))
}

// forgetItems makes a tombstone know its items by name only.
func (a *Allocation) forgetItems() {
	if !a.wantsItems() {
		return
	}
	a.claims = slices.Clone(a.claims)
	for i := range a.claims {
		c := &a.claims[i]
		if len(c.held()) == 0 {
			continue
		}
		names := slices.Clone(c.held())
		for j := range names {
			names[j].is = nil
		}
		c.setItems(c.picks(), names)
	}
}

// itemsOf copies the items of a claim for a reader; those of a tombstone are names only.
func (a *Allocation) itemsOf(i int) []quota.HeldItem {
	held := a.claims[i].held()
	if len(held) == 0 {
		return nil
	}
	list := make([]quota.HeldItem, len(held))
	for j, h := range held {
		list[j] = quota.HeldItem{Resource: h.resource, Name: h.name}
		if h.is != nil {
			list[j].State, list[j].Data = h.is.state, slices.Clone(h.is.data)
			list[j].UpdatedWall = h.is.touched(a).Wall
		}
	}
	return list
}
