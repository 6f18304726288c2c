package ledger_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// thing is an item.
type thing struct {
	quota.ItemName
	state   string
	turn    int // in the order of age
	owner   *grant
	claim   int // of the owner
	updated quota.Stamp
	since   quota.Instant
	expires quota.Stamp
	data    []quota.Label
	leaving bool
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

func (o *oracle) specOf(it *thing) *quota.ItemSpec { return itemized(o.trees[it.Tree], it.Resource) }

// counted is a request in which items count as amounts.
func counted(c quota.Allocate) quota.Allocate {
	c.Claims = slices.Clone(c.Claims)
	for i := range c.Claims {
		claim := &c.Claims[i]
		claim.Amounts = slices.Clone(claim.Amounts)
		for _, p := range claim.Picks {
			claim.Amounts = append(claim.Amounts, quota.Component{Resource: p.Resource, Amount: quota.Amount(p.Count)})
		}
		slices.SortFunc(claim.Amounts, byResource)
	}
	return c
}

// sorted are items by the order that compares them.
func sorted(list []*thing, order func(a, b *thing) int) []*thing {
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	return list
}

func byName(a, b *thing) int {
	return cmp.Or(strings.Compare(a.Tree, b.Tree), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Name, b.Name))
}

func byAge(a, b *thing) int { return cmp.Compare(a.turn, b.turn) }

func (o *oracle) those(pass func(*thing) bool) []*thing {
	return slices.DeleteFunc(sorted(o.items, byName), func(it *thing) bool { return !pass(it) })
}

func (o *oracle) of(tree, resource string) []*thing {
	return o.those(func(it *thing) bool { return it.Tree == tree && it.Resource == resource })
}

func (o *oracle) find1(name quota.ItemName) *thing {
	for _, it := range o.items {
		if it.ItemName == name {
			return it
		}
	}
	return nil
}

// heldBy are the items of a grant, claim by claim.
func (o *oracle) heldBy(g *grant) []*thing {
	list := o.those(func(it *thing) bool { return it.owner == g })
	slices.SortStableFunc(list, func(a, b *thing) int { return a.claim - b.claim })
	return list
}

// become changes state and owner.
func (o *oracle) become(it *thing, state string, owner *grant) {
	o.turn++
	it.state, it.owner, it.turn, it.updated, it.since = state, owner, o.turn, o.now, o.now.At
}

func (o *oracle) makeOne(tree, resource, name string) {
	it := &thing{ItemName: quota.ItemName{Tree: tree, Resource: resource, Name: name}}
	o.become(it, cmp.Or(itemized(o.trees[tree], resource).State, "free"), nil)
	o.items = append(o.items, it)
}

// makeUpTo makes items on demand until there are so many.
func (o *oracle) makeUpTo(tree, resource string, count int) {
	key := tree + "|" + resource
	for len(o.of(tree, resource)) < count {
		o.numbers[key]++
		name := fmt.Sprintf("%s-%d", strings.ReplaceAll(resource, "/", "-"), o.numbers[key])
		if o.find1(quota.ItemName{Tree: tree, Resource: resource, Name: name}) == nil {
			o.makeOne(tree, resource, name)
		}
	}
}

func (o *oracle) remove(it *thing) {
	o.items = slices.DeleteFunc(o.items, func(other *thing) bool { return other == it })
	if spec := o.specOf(it); spec != nil && len(spec.Names) == 0 {
		o.makeUpTo(it.Tree, it.Resource, spec.Min)
	}
}

// stateAfter is what an item gets when the grant that holds it ends.
func (o *oracle) stateAfter(it *thing, end quota.State) string {
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

// returnItems takes everything from a grant that ends, which remembers what it was.
func (o *oracle) giveAll(g *grant, end quota.State) {
	list := o.heldBy(g)
	if g.lost == nil {
		g.remember(list)
	}
	states := make([]string, len(list))
	for i, it := range list {
		states[i] = o.stateAfter(it, end)
	}
	for i, it := range list {
		o.giveBack(it, states[i])
	}
}

func (g *grant) remember(list []*thing) {
	g.lost = make([][]quota.ItemName, len(g.request.Claims))
	for _, it := range list {
		g.lost[it.claim] = append(g.lost[it.claim], it.ItemName)
	}
}

func (o *oracle) giveBack(it *thing, state string) {
	leaving := o.leavingAfter([]*thing{it})
	for _, other := range o.items {
		other.leaving = leaving[other]
	}
	if it.leaving {
		it.owner = nil
		o.remove(it)
		return
	}
	o.become(it, state, nil)
	it.expires = quota.Stamp{}
	if life := o.specOf(it).Lifespan; life > 0 {
		it.expires = quota.Stamp{At: o.now.At + quota.Instant(life), Wall: o.now.Wall + int64(life)}
	}
}

// leavingAfter says which items are to leave when some are given back, one after the other: while there are more on
// demand than there may be, whichever is given back goes, and the oldest of those that were to leave stays for it.
func (o *oracle) leavingAfter(back []*thing) map[*thing]bool {
	leaving, gone := map[*thing]bool{}, map[*thing]bool{}
	for _, it := range o.items {
		leaving[it] = it.leaving
	}
	for _, it := range back {
		all := slices.DeleteFunc(o.of(it.Tree, it.Resource), func(other *thing) bool { return gone[other] })
		if spec := o.specOf(it); !leaving[it] && len(spec.Names) == 0 && len(all) > spec.Max {
			all = sorted(all, byAge)
			spared := all[slices.IndexFunc(all, func(other *thing) bool { return leaving[other] })]
			leaving[it], leaving[spared] = true, false
		}
		gone[it] = leaving[it]
	}
	return leaving
}

// lacking are the violations of a request for items, as if victims had given theirs back.
func (o *oracle) lacking(c quota.Allocate, victims []*grant) []quota.Violation {
	type in struct{ tree, resource, state string }
	state := map[*thing]string{} // of those to be had
	var back []*thing
	for _, v := range victims {
		back = append(back, o.heldBy(v)...)
	}
	leaving := o.leavingAfter(back)
	for _, it := range o.items {
		switch {
		case it.owner == nil:
			state[it] = it.state
		case slices.Contains(victims, it.owner) && !leaving[it]:
			state[it] = o.stateAfter(it, quota.WasPreempted)
		}
	}
	named, wanted := map[*thing]bool{}, map[in]int{}
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				if it := o.find1(quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name}); it != nil && !leaving[it] {
					named[it] = true
				}
			}
			if len(p.Names) == 0 {
				wanted[in{claim.Tree, p.Resource, cmp.Or(p.State, "free")}] += p.Count
			}
		}
	}
	var list []quota.Violation
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			v := quota.Violation{Tree: claim.Tree, Resource: p.Resource, Kind: quota.OfItems, Requested: 1}
			for _, v.Item = range p.Names {
				it := o.find1(quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: v.Item})
				exists := it != nil && !leaving[it]
				if exists && state[it] != "" && (p.State == "" || p.State == state[it]) {
					continue
				}
				v.Limit, v.Used = 0, 0
				if exists {
					v.Limit, v.Used = 1, 1
				}
				list = append(list, v)
			}
			key := in{claim.Tree, p.Resource, cmp.Or(p.State, "free")}
			if len(p.Names) > 0 || wanted[key] == 0 {
				continue
			}
			spec := itemized(o.trees[claim.Tree], p.Resource)
			all := o.of(claim.Tree, p.Resource)
			most, gone := len(spec.Names)+spec.Max, 0
			available := 0
			for _, it := range all {
				if slices.Contains(victims, it.owner) && leaving[it] {
					gone++
				}
				if named[it] {
					most--
				} else if state[it] == key.state {
					available++
				}
			}
			if len(spec.Names) == 0 && cmp.Or(spec.State, "free") == key.state {
				available += max(0, spec.Max-len(all)+gone)
			}
			most = max(0, most)
			available = min(available, most)
			if wanted[key] > available {
				v.Item, v.Limit, v.Used, v.Requested = key.state, quota.Amount(most), quota.Amount(most-available), quota.Amount(wanted[key])
				list = append(list, v)
			}
			delete(wanted, key)
		}
	}
	return list
}

// createWanted makes the items that a denied request lacks and other clients may bring into the right state.
func (o *oracle) makeWanted(c quota.Allocate, violations []quota.Violation) {
	for _, v := range violations {
		if v.Kind != quota.OfItems || v.Requested > v.Limit {
			return
		}
	}
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			spec := itemized(o.trees[claim.Tree], p.Resource)
			for _, v := range violations {
				if v.Tree == claim.Tree && v.Resource == p.Resource && len(p.Names) == 0 && v.Item == cmp.Or(p.State, "free") && len(spec.Names) == 0 {
					o.makeUpTo(claim.Tree, p.Resource, min(spec.Max, len(o.of(claim.Tree, p.Resource))+int(v.Missing())))
				}
			}
		}
	}
}

// take gives a new grant its items, those with names first.
func (o *oracle) take(g *grant) {
	for i, claim := range g.asked.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				it := o.find1(quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name})
				o.become(it, cmp.Or(p.HeldState, "leased"), g)
				it.claim = i
			}
		}
	}
	for i, claim := range g.asked.Claims {
		for _, p := range claim.Picks {
			if len(p.Names) > 0 {
				continue
			}
			free := func() []*thing {
				return sorted(slices.DeleteFunc(o.of(claim.Tree, p.Resource), func(it *thing) bool {
					return it.owner != nil || it.state != cmp.Or(p.State, "free")
				}), byAge)
			}
			if lack := p.Count - len(free()); lack > 0 {
				o.makeUpTo(claim.Tree, p.Resource, len(o.of(claim.Tree, p.Resource))+lack)
			}
			for _, it := range free()[:p.Count] {
				o.become(it, cmp.Or(p.HeldState, "leased"), g)
				it.claim = i
			}
		}
	}
}

// dueAt is when an item changes by itself; 0 if it does not.
func (it *thing) dueAt(o *oracle) quota.Instant {
	if it.owner != nil {
		return 0
	}
	at := it.expires.At
	for _, t := range o.specOf(it).Turns {
		if turns := it.since + quota.Instant(t.After); t.From == it.state && (at == 0 || turns < at) {
			at = turns
		}
	}
	return at
}

func (o *oracle) turnItem(it *thing) {
	if it.expires.At != 0 && it.expires.At <= o.now.At {
		o.remove(it)
		return
	}
	for _, t := range o.specOf(it).Turns {
		if t.From == it.state {
			o.become(it, t.To, nil)
			return
		}
	}
}

// touched is when an item or its holder changed last.
func (it *thing) touched() quota.Stamp {
	if it.owner != nil && it.owner.touched.At > it.updated.At {
		return it.owner.touched
	}
	return it.updated
}

func (o *oracle) infoOfItem(it *thing) quota.ItemInfo {
	info := quota.ItemInfo{
		ItemName: it.ItemName, State: it.state, Data: it.data, Updated: it.touched().At, UpdatedWall: it.touched().Wall,
		Expires: it.expires.At, ExpiresWall: it.expires.Wall, Leaving: it.leaving,
	}
	if it.owner != nil {
		info.Owner, info.Allocation, info.Fence = it.owner.asked.Principal.User, it.owner.asked.ID, it.owner.fence
	}
	return info
}

func itemText(i quota.ItemInfo) string { return fmt.Sprintf("%+v", i) }

// compareItems reads all items, and counts them.
func (p *pair) compareItems(t *rapid.T) {
	v, o := p.ledger.View(), p.oracle
	if n := v.Counts().Items; n != len(o.items) {
		t.Fatalf("there are %d items, want %d", n, len(o.items))
	}
	for name := range o.trees {
		var want, got []quota.ItemInfo
		states := map[string]int{}
		for _, it := range o.those(func(it *thing) bool { return it.Tree == name }) {
			want = append(want, o.infoOfItem(it))
			states[it.Resource+"|"+it.state]++
		}
		for after, more := (*quota.ItemName)(nil), true; more; more = after != nil {
			page, refused := v.Items(quota.ItemFilter{Tree: name}, after, 2, true)
			if refused != nil {
				t.Fatal(refused)
			}
			got, after = append(got, page.Items...), page.Next
		}
		same(t, "items of "+name, want, got)
		counts, refused := v.ItemCounts(name, "")
		if refused != nil {
			t.Fatal(refused)
		}
		told := map[string]int{}
		for _, c := range counts {
			for _, n := range c.States {
				told[c.Resource+"|"+n.Name] = n.Count
			}
		}
		same(t, "states of "+name, states, told)
	}
	if page, refused := v.Items(quota.ItemFilter{Tree: "nowhere"}, nil, math.MaxInt, false); refused == nil {
		t.Fatalf("items of nowhere: %+v", page)
	}
}
