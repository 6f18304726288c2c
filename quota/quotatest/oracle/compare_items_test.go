package oracle

import (
	"math"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// compareItems reads all items, and counts them.
func (p *pair) compareItems(t *rapid.T) {
	v, o := p.ledger.Reader(), p.oracle
	if n := v.Counts().Items; n != len(o.items) {
		t.Fatalf("there are %d items, want %d", n, len(o.items))
	}
	for name := range o.trees {
		var want, got []quota.ItemInfo
		states := map[string]int{}
		for _, it := range o.itemsWhere(func(it *item) bool { return it.Tree == name }) {
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
		quotatest.RequireSame(t, "items of "+name, want, got)
		counts, refused := v.ItemCounts(name, "")
		if refused != nil {
			t.Fatal(refused)
		}
		counted := map[string]int{}
		for _, c := range counts {
			for _, n := range c.States {
				counted[c.Resource+"|"+n.Name] = n.Count
			}
		}
		quotatest.RequireSame(t, "states of "+name, states, counted)
	}
	if page, refused := v.Items(quota.ItemFilter{Tree: "nowhere"}, nil, math.MaxInt, false); refused == nil {
		t.Fatalf("items of nowhere: %+v", page)
	}
}
