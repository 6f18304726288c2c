package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// item is one item, idle or held.
type item struct {
	quota.ItemName
	state    string
	stateSeq int // in the order of age
	owner    *allocation
	claim    int // of the owner
	updated  quota.Stamp
	since    quota.Instant
	expires  quota.Stamp
	data     []quota.Label
	leaving  bool
}

// itemized is what a tree says of the items of a resource; nil if it has none.
func itemized(spec quota.TreeSpec, resource string) *quota.ItemSpec {
	for _, r := range spec.Resources {
		if r.Name == resource {
			return r.Items
		}
	}
	return nil
}

func (o *oracle) specOf(it *item) *quota.ItemSpec { return itemized(o.trees[it.Tree], it.Resource) }

// sorted are items by the order that compares them.
func sorted(list []*item, order func(a, b *item) int) []*item {
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	return list
}

func byName(a, b *item) int {
	return cmp.Or(strings.Compare(a.Tree, b.Tree), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Name, b.Name))
}

func byClaim(a, b *item) int { return cmp.Compare(a.claim, b.claim) }

func byAge(a, b *item) int { return cmp.Compare(a.stateSeq, b.stateSeq) }

func (o *oracle) itemsWhere(pass func(*item) bool) []*item {
	return slices.DeleteFunc(sorted(o.items, byName), func(it *item) bool { return !pass(it) })
}

func (o *oracle) itemsOf(tree, resource string) []*item {
	return o.itemsWhere(func(it *item) bool { return it.Tree == tree && it.Resource == resource })
}

func (o *oracle) findItem(name quota.ItemName) *item {
	for _, it := range o.items {
		if it.ItemName == name {
			return it
		}
	}
	return nil
}

// heldBy are the items of an allocation, claim by claim.
func (o *oracle) heldBy(a *allocation) []*item {
	list := o.itemsWhere(func(it *item) bool { return it.owner == a })
	slices.SortStableFunc(list, byClaim)
	return list
}

// changeState changes state and owner.
func (o *oracle) changeState(it *item, state string, owner *allocation) {
	o.lastStateSeq++
	it.state, it.owner, it.stateSeq, it.updated, it.since = state, owner, o.lastStateSeq, o.now, o.now.At
}

func (o *oracle) createItem(tree, resource, name string) {
	it := &item{ItemName: quota.ItemName{Tree: tree, Resource: resource, Name: name}}
	o.changeState(it, cmp.Or(itemized(o.trees[tree], resource).State, "free"), nil)
	o.items = append(o.items, it)
}

// createItems creates items on demand until there are so many.
func (o *oracle) createItems(tree, resource string, count int) {
	key := tree + "|" + resource
	for len(o.itemsOf(tree, resource)) < count {
		o.itemNumbers[key]++
		name := fmt.Sprintf("%s-%d", strings.ReplaceAll(resource, "/", "-"), o.itemNumbers[key])
		if o.findItem(quota.ItemName{Tree: tree, Resource: resource, Name: name}) == nil {
			o.createItem(tree, resource, name)
		}
	}
}

func (o *oracle) removeItem(it *item) {
	o.items = slices.DeleteFunc(o.items, func(other *item) bool { return other == it })
	if spec := o.specOf(it); spec != nil && len(spec.Names) == 0 {
		o.createItems(it.Tree, it.Resource, spec.Min)
	}
}

// stateAfter is what an item gets when its allocation ends.
func (o *oracle) stateAfter(it *item, end quota.State) string {
	spec := o.specOf(it)
	released := cmp.Or(spec.Released, "free")
	expired := cmp.Or(spec.Expired, released)
	if it.owner.until != 0 && (end == quota.Cancelled || end == quota.Expired) {
		if found := it.owner.foundState(it); found != "" {
			return found
		}
		for _, p := range it.owner.asked.Claims[it.claim].Picks {
			switch {
			case p.Resource != it.Resource:
			case len(p.Names) > 0:
				return cmp.Or(p.State, expired)
			default:
				return cmp.Or(p.State, "free")
			}
		}
	}
	if end == quota.Released {
		return released
	}
	return expired
}

// returnItems takes all items from an allocation that ends, which remembers what they were.
func (o *oracle) returnItems(a *allocation, end quota.State) {
	list := o.heldBy(a)
	if a.itemsAtEnd == nil {
		a.rememberItems(list)
	}
	states := make([]string, len(list))
	for i, it := range list {
		states[i] = o.stateAfter(it, end)
	}
	for i, it := range list {
		o.returnItem(it, states[i])
	}
}

func (a *allocation) rememberItems(list []*item) {
	a.itemsAtEnd = make([][]quota.ItemName, len(a.request.Claims))
	for _, it := range list {
		a.itemsAtEnd[it.claim] = append(a.itemsAtEnd[it.claim], it.ItemName)
	}
}

func (o *oracle) returnItem(it *item, state string) {
	after := o.afterReturn([]*item{it}, []string{state})
	for _, other := range o.items {
		other.leaving = after.leaving[other]
	}
	if after.gone[it] {
		it.owner = nil
		o.removeItem(it)
		return
	}
	o.changeState(it, after.state[it], nil)
	it.expires = quota.Stamp{}
	if life := o.specOf(it).Lifespan; life > 0 && !o.isRetired(it) {
		it.expires = quota.Stamp{At: o.now.At + quota.Instant(life), Wall: o.now.Wall + int64(life)}
	}
}

func (o *oracle) isRetired(it *item) bool {
	return it.owner == nil && it.state == o.specOf(it).Retired
}

// setIdleState gives an idle item another state, in which it may have to go.
func (o *oracle) setIdleState(it *item, state string) {
	if state == o.specOf(it).Removed {
		o.removeItem(it)
		return
	}
	if o.changeState(it, state, nil); o.isRetired(it) {
		it.expires = quota.Stamp{}
	}
}

// afterReturn is what becomes of items when some are returned.
type afterReturn struct {
	leaving, gone map[*item]bool
	state         map[*item]string // of idle items
}

// surplus is the number of items of a resource beyond its maximum, without those that are gone or wait for their end.
func (r *afterReturn) surplus(all []*item, spec *quota.ItemSpec) int {
	count := -spec.Max
	for _, it := range all {
		if !r.gone[it] && (spec.Retired == "" || r.state[it] != spec.Retired) {
			count++
		}
	}
	return count
}

// afterReturn returns what becomes of items when some are returned in some states, one after the other: while there are
// more on demand than the maximum, an item that is returned is retired or removed, and the oldest of those that were to
// leave stays instead.
func (o *oracle) afterReturn(back []*item, states []string) *afterReturn {
	r := &afterReturn{leaving: map[*item]bool{}, gone: map[*item]bool{}, state: map[*item]string{}}
	for _, it := range o.items {
		if r.leaving[it] = it.leaving; it.owner == nil {
			r.state[it] = it.state
		}
	}
	for i, it := range back {
		spec, all := o.specOf(it), sorted(o.itemsOf(it.Tree, it.Resource), byAge)
		if !r.leaving[it] && len(spec.Names) == 0 && r.surplus(all, spec) > 0 {
			spared := all[slices.IndexFunc(all, func(other *item) bool { return !r.gone[other] && r.leaving[other] })]
			r.leaving[it], r.leaving[spared] = true, false
		}
		tooMany := r.leaving[it]
		r.leaving[it] = false
		switch {
		case states[i] == spec.Removed, tooMany && spec.Retired == "":
			r.gone[it] = true
		case tooMany:
			r.state[it] = spec.Retired
		default:
			r.state[it] = states[i]
		}
	}
	return r
}

// dueAt is when an item changes by itself; 0 if it does not.
func (it *item) dueAt(o *oracle) quota.Instant {
	if it.owner != nil {
		return 0
	}
	at := it.expires.At
	for _, t := range o.specOf(it).Turns {
		if due := it.since + quota.Instant(t.After); t.From == it.state && (at == 0 || due < at) {
			at = due
		}
	}
	return at
}

func (o *oracle) applyTransition(it *item) {
	if it.expires.At != 0 && it.expires.At <= o.now.At {
		if retired := o.specOf(it).Retired; retired != "" {
			o.setIdleState(it, retired)
		} else {
			o.removeItem(it)
		}
		return
	}
	for _, t := range o.specOf(it).Turns {
		if t.From == it.state {
			o.setIdleState(it, t.To)
			return
		}
	}
}

// lastChange is when an item or its holder changed last.
func (it *item) lastChange() quota.Stamp {
	if it.owner != nil && it.owner.renewed.At > it.updated.At {
		return it.owner.renewed
	}
	return it.updated
}

func (o *oracle) infoOfItem(it *item) quota.ItemInfo {
	info := quota.ItemInfo{
		ItemName: it.ItemName, State: it.state, Data: it.data, Updated: it.lastChange().At, UpdatedWall: it.lastChange().Wall,
		Expires: it.expires.At, ExpiresWall: it.expires.Wall, Leaving: it.leaving,
	}
	if it.owner != nil {
		info.Owner, info.Allocation, info.Fence = it.owner.asked.Principal.User, it.owner.asked.ID, it.owner.fence
		info.HeldUntil = it.owner.expires
	}
	return info
}
