package ledger_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// changeable finds items that are to be changed; forbids says why one may not be.
func (o *oracle) changeable(updates []quota.ItemUpdate, field string, forbids func(*thing) quota.Kind) ([]*thing, verdict) {
	var list []*thing
	for i, u := range updates {
		at := fmt.Sprintf("%s[%d].item", field, i)
		it := o.find1(u.Item)
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
func (o *oracle) change(it *thing, u quota.ItemUpdate) {
	data := laid(it.data, u.Data)
	turns := u.State != "" && u.State != it.state
	if !turns && slices.Equal(data, it.data) {
		return
	}
	if turns {
		o.become(it, u.State, it.owner)
	}
	it.data, it.updated = data, o.now
}

func (o *oracle) updateItems(c quota.UpdateItems) verdict {
	if len(c.Updates) == 0 {
		return refusal(quota.Invalid, "updates")
	}
	things, v := o.changeable(c.Updates, "updates", func(it *thing) quota.Kind {
		if it.owner != nil {
			return quota.InUse
		}
		return 0
	})
	if v.refused != 0 {
		return v
	}
	for i, it := range things {
		o.change(it, c.Updates[i])
		v.items = append(v.items, itemText(o.infoOfItem(it)))
	}
	return v
}

func (o *oracle) resetItems(c quota.ResetItems) verdict {
	if itemized(o.trees[c.Tree], c.Resource) == nil {
		return refusal(quota.NotFound, "resource")
	}
	var v verdict
	var holders []*grant
	lost := map[*grant][]*thing{}
	for _, it := range o.of(c.Tree, c.Resource) {
		if it.owner == nil || it.state != c.State || it.owner.state != quota.Held || quota.Span(o.now.At-it.touched().At) < c.Idle {
			continue
		}
		info := o.infoOfItem(it)
		info.State = c.To
		v.items = append(v.items, itemText(info))
		if lost[it.owner] == nil {
			holders = append(holders, it.owner)
		}
		lost[it.owner] = append(lost[it.owner], it)
	}
	for _, g := range holders {
		if o.takeAway(g, lost[g], c.To, quota.Expired) {
			g.by = "reset"
			o.note(quota.Event{Kind: quota.EventExpired, ID: g.request.ID, By: "reset"})
		}
	}
	return v
}

// releaseSome gives some items back.
func (o *oracle) releaseSome(g *grant, c quota.Release) verdict {
	gone := slices.DeleteFunc(o.heldBy(g), func(it *thing) bool { return !slices.Contains(c.Items, it.ItemName) })
	if len(gone) > 0 {
		o.takeAway(g, gone, c.ItemState, quota.Released)
	}
	return verdict{fence: g.fence, repeated: len(gone) == 0}
}

// takeAway makes a grant smaller, or ends it if nothing would be left; then it answers true.
func (o *oracle) takeAway(g *grant, gone []*thing, state string, end quota.State) bool {
	claims := slices.Clone(g.request.Claims)
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
		g.remember(o.heldBy(g))
	}
	slices.SortStableFunc(gone, func(a, b *thing) int { return a.claim - b.claim })
	for _, it := range gone {
		o.giveBack(it, cmp.Or(state, o.specOf(it).Released, "free"))
	}
	if !left {
		o.end(g, end)
		return true
	}
	g.request.Claims = claims
	for i, c := range claims {
		o.mark(c.Tree)
		o.slide(c.Tree, g.placed[i])
	}
	return false
}

// settleItems makes items what the configuration says, after it was another.
func (o *oracle) settleItems(before map[string]quota.TreeSpec) {
	o.items = o.those(func(it *thing) bool { return o.specOf(it) != nil })
	var names []string
	for name := range o.trees {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, tree := range names {
		for _, r := range o.trees[tree].Resources {
			was := itemized(before[tree], r.Name)
			if was == nil {
				delete(o.numbers, tree+"|"+r.Name)
			}
			if r.Items != nil && (was == nil || fmt.Sprintf("%+v", *was) != fmt.Sprintf("%+v", *r.Items)) {
				o.settleStock(tree, r, was)
			}
		}
	}
}

func (o *oracle) settleStock(tree string, r quota.Resource, was *quota.ItemSpec) {
	if was != nil && was.Lifespan != r.Items.Lifespan {
		for _, it := range o.of(tree, r.Name) {
			if it.expires != (quota.Stamp{}) {
				it.expires.At += quota.Instant(r.Items.Lifespan - was.Lifespan)
				it.expires.Wall += int64(r.Items.Lifespan - was.Lifespan)
			}
			if r.Items.Lifespan == 0 {
				it.expires = quota.Stamp{}
			}
		}
	}
	all := sorted(o.of(tree, r.Name), func(a, b *thing) int {
		held := func(it *thing) int {
			return len(slices.DeleteFunc([]*grant{it.owner}, func(g *grant) bool { return g == nil }))
		}
		return cmp.Or(held(a)-held(b), b.turn-a.turn)
	})
	for i, it := range all {
		it.leaving = i < len(all)-r.Items.Max
		if len(r.Items.Names) > 0 {
			it.leaving = !slices.Contains(r.Items.Names, it.Name)
		}
		if it.leaving && it.owner == nil {
			o.items = slices.DeleteFunc(o.items, func(other *thing) bool { return other == it })
		}
	}
	for _, name := range r.Items.Names {
		if o.find1(quota.ItemName{Tree: tree, Resource: r.Name, Name: name}) == nil {
			o.makeOne(tree, r.Name, name)
		}
	}
	if len(r.Items.Names) == 0 {
		o.makeUpTo(tree, r.Name, r.Items.Min)
	}
}

// withoutItemTexts blanks how the items of a resource are told in words.
func withoutItemTexts(changes []quota.Change) []quota.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		if strings.HasPrefix(changes[i].Field, "items ") || strings.HasPrefix(changes[i].Field, "lease ") {
			changes[i].Before, changes[i].After = "", ""
		}
	}
	return changes
}

// namedOnce refuses a request in which two claims name an item.
func namedOnce(c quota.Allocate) verdict {
	seen := map[quota.ItemName]bool{}
	for i, claim := range c.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				key := quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name}
				if seen[key] {
					return refusal(quota.Invalid, fmt.Sprintf("claims[%d].items[%s]", i, p.Resource))
				}
				seen[key] = true
			}
		}
	}
	return verdict{}
}
