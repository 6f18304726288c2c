package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// configureItems makes items what the configuration says, after it was another.
func (o *oracle) configureItems(before map[string]quota.TreeSpec) {
	o.items = o.itemsWhere(func(it *item) bool { return o.specOf(it) != nil })
	for _, tree := range slices.Sorted(maps.Keys(o.trees)) {
		for _, r := range o.trees[tree].Resources {
			was := itemized(before[tree], r.Name)
			if was == nil {
				delete(o.itemNumbers, tree+"|"+r.Name)
			}
			if r.Items != nil && (was == nil || fmt.Sprintf("%+v", *was) != fmt.Sprintf("%+v", *r.Items)) {
				o.configureStock(tree, r, was)
			}
		}
	}
}

func (o *oracle) configureStock(tree string, r quota.Resource, was *quota.ItemSpec) {
	if was != nil && was.Lifespan != r.Items.Lifespan {
		for _, it := range o.itemsOf(tree, r.Name) {
			if it.expires != (quota.Stamp{}) {
				it.expires.At += quota.Instant(r.Items.Lifespan - was.Lifespan)
				it.expires.Wall += int64(r.Items.Lifespan - was.Lifespan)
			}
			if r.Items.Lifespan == 0 {
				it.expires = quota.Stamp{}
			}
		}
	}
	if was != nil {
		o.followRetired(tree, r, was.Retired)
	}
	all := sorted(o.itemsOf(tree, r.Name), func(a, b *item) int {
		rank := func(it *item) int {
			return map[bool]int{true: 2}[it.owner != nil] - map[bool]int{true: 1}[o.isRetired(it)]
		}
		return cmp.Or(rank(a)-rank(b), b.stateSeq-a.stateSeq)
	})
	for i, it := range all {
		it.leaving = i < len(all)-r.Items.Max
		if len(r.Items.Names) > 0 {
			it.leaving = !slices.Contains(r.Items.Names, it.Name)
		}
	}
	for _, it := range o.itemsOf(tree, r.Name) {
		if it.leaving && it.owner == nil {
			it.leaving = false
			o.retire(it)
		}
	}
	for _, name := range r.Items.Names {
		if o.findItem(quota.ItemName{Tree: tree, Resource: r.Name, Name: name}) == nil {
			o.createItem(tree, r.Name, name)
		}
	}
	if len(r.Items.Names) == 0 {
		o.createItems(tree, r.Name, r.Items.Min)
	}
}

// retire is for an idle item that is too many. It does not create others.
func (o *oracle) retire(it *item) {
	switch retired := o.specOf(it).Retired; retired {
	case it.state:
	case "":
		o.items = slices.DeleteFunc(o.items, func(other *item) bool { return other == it })
	default:
		o.setIdleState(it, retired)
	}
}

// followRetired changes idle items whose states mean something else than before. was is the former state of retired
// ones.
func (o *oracle) followRetired(tree string, r quota.Resource, was string) {
	for _, it := range o.itemsOf(tree, r.Name) {
		switch {
		case it.owner != nil:
		case it.state == r.Items.Removed:
			o.items = slices.DeleteFunc(o.items, func(other *item) bool { return other == it })
		case it.state == r.Items.Retired:
			it.expires = quota.Stamp{}
		case it.state == was:
			o.retire(it)
		}
	}
}
