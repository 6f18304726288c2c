package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// changeable finds items that are to be changed; forbids says why one may not be.
func (o *oracle) changeable(updates []quota.ItemUpdate, field string,
	forbids func(*item) quota.Kind,
) ([]*item, verdict) {
	var list []*item
	for i, u := range updates {
		at := fmt.Sprintf("%s[%d].item", field, i)
		it := o.findItem(u.Item)
		if it == nil {
			return nil, refusal(quota.NotFound, at)
		}
		if kind := forbids(it); kind != 0 {
			return nil, refusal(kind, at)
		}
		if slices.Contains(list, it) {
			return nil, refusal(quota.Invalid, at)
		}
		list = append(list, it)
	}
	return list, verdict{}
}

// change makes an item what an update says, unless it is so already.
func (o *oracle) change(it *item, u quota.ItemUpdate) {
	data := mergeLabels(it.data, u.Data)
	changes := u.State != "" && u.State != it.state
	if !changes && slices.Equal(data, it.data) {
		return
	}
	if changes {
		o.changeState(it, u.State, it.owner)
	}
	it.data, it.updated = data, o.now
}

func (o *oracle) updateItems(c quota.UpdateItems) verdict {
	if len(c.Updates) == 0 {
		return refusal(quota.Invalid, "updates")
	}
	changed, v := o.changeable(c.Updates, "updates", func(it *item) quota.Kind {
		if it.owner != nil {
			return quota.InUse
		}
		return 0
	})
	if v.refused == 0 {
		v = o.checkBackInUse(changed, c.Updates)
	}
	if v.refused != 0 {
		return v
	}
	for i, it := range changed {
		o.change(it, c.Updates[i])
		if o.isRetired(it) {
			it.expires = quota.Stamp{}
		}
		v.items = append(v.items, itemText(o.infoOfItem(it)))
		if it.state == o.specOf(it).Removed {
			o.removeItem(it)
		}
	}
	return v
}

// checkBackInUse refuses to bring more items back into use than there may be.
func (o *oracle) checkBackInUse(changed []*item, updates []quota.ItemUpdate) verdict {
	back := map[string]int{}
	for i, it := range changed {
		spec, state := o.specOf(it), updates[i].State
		if !o.isRetired(it) || slices.Contains([]string{"", it.state, spec.Removed}, state) {
			continue
		}
		key := it.Tree + "|" + it.Resource
		back[key]++
		if o.afterReturn(nil, nil).surplus(o.itemsOf(it.Tree, it.Resource), spec)+back[key] > 0 {
			return refusal(quota.InUse, fmt.Sprintf("updates[%d].state", i))
		}
	}
	return verdict{}
}

func (o *oracle) resetItems(c quota.ResetItems) verdict {
	if itemized(o.trees[c.Tree], c.Resource) == nil {
		return refusal(quota.NotFound, "resource")
	}
	var v verdict
	var holders []*allocation
	taken := map[*allocation][]*item{}
	for _, it := range o.itemsOf(c.Tree, c.Resource) {
		if it.owner == nil || it.state != c.State || it.owner.state != quota.Held ||
			quota.Span(o.now.At-it.lastChange().At) < c.Idle {
			continue
		}
		info := o.infoOfItem(it)
		info.State = c.To
		v.items = append(v.items, itemText(info))
		if taken[it.owner] == nil {
			holders = append(holders, it.owner)
		}
		taken[it.owner] = append(taken[it.owner], it)
	}
	for _, a := range holders {
		if o.takeFrom(a, taken[a], c.To, quota.Expired) {
			a.by = "reset"
			o.recordEvent(quota.Event{Kind: quota.EventExpired, ID: a.request.ID, By: "reset"})
		}
	}
	return v
}

// releaseItems gives some items back.
func (o *oracle) releaseItems(a *allocation, c quota.Release) verdict {
	gone := slices.DeleteFunc(o.heldBy(a), func(it *item) bool { return !slices.Contains(c.Items, it.ItemName) })
	if len(gone) > 0 {
		o.takeFrom(a, gone, c.ItemState, quota.Released)
	}
	return verdict{fence: a.fence, repeated: len(gone) == 0}
}

// takeFrom takes items from an allocation, or ends it if nothing would be left; then it returns true.
func (o *oracle) takeFrom(a *allocation, gone []*item, state string, end quota.State) bool {
	claims := slices.Clone(a.request.Claims)
	left := false
	for i := range claims {
		amounts := slices.Clone(claims[i].Amounts)
		for j := range amounts {
			for _, it := range gone {
				if it.claim == i && it.Resource == amounts[j].Resource {
					amounts[j].Amount--
				}
			}
		}
		claims[i].Amounts = slices.DeleteFunc(amounts, func(a quota.Component) bool {
			return a.Amount == 0 && itemized(o.trees[claims[i].Tree], a.Resource) != nil
		})
		left = left || len(claims[i].Amounts) > 0
	}
	if !left {
		a.rememberItems(o.heldBy(a))
	}
	slices.SortStableFunc(gone, byClaim)
	for _, it := range gone {
		o.returnItem(it, cmp.Or(state, o.specOf(it).Released, "free"))
	}
	if !left {
		o.end(a, end)
		return true
	}
	a.request.Claims = claims
	for i, c := range claims {
		o.markChanged(c.Tree)
		o.reclaim(c.Tree, a.placed[i])
	}
	return false
}
