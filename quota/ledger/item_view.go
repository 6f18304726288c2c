package ledger

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Items shows up to max items that pass the filter, by resource and then by name, after an item, nil for the first ones.
// Without data their user data are left out. A page may be short although more follow, because it looks at a bounded number
// of items. NotFound names a tree or resource that does not exist, or has no items.
func (v View) Items(f quota.ItemFilter, after *quota.ItemName, max int, data bool) (quota.ItemPage, *quota.Error) {
	stocks, err := v.ledger.forest.stocks(f.Tree, f.Resource)
	if err != nil {
		return quota.ItemPage{}, err
	}
	var page quota.ItemPage
	looked := 0
	for _, s := range stocks {
		for _, name := range filterNames(f, s.namesAfter(after)) {
			if len(page.Items) == max || looked == scanned {
				return page, nil
			}
			looked++
			info := v.ledger.inventory.itemInfo(s.byName[name])
			page.Next = &info.ItemName
			if !data {
				info.Data = nil
			}
			if matchesItemFilter(f, info) {
				page.Items = append(page.Items, info)
			}
		}
	}
	page.Next = nil
	return page, nil
}

// stocks are those of a tree by resource: of one if it is named.
func (f *forest) stocks(tree, resource string) ([]*stock, *quota.Error) {
	if resource != "" {
		s, err := f.findStock(tree, resource, "resource")
		return []*stock{s}, err
	}
	t := f.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var list []*stock
	for _, r := range t.resources {
		if r.stock != nil {
			list = append(list, r.stock)
		}
	}
	return list, nil
}

// namesAfter are the names of items that come after one in the order of pages.
func (s *stock) namesAfter(after *quota.ItemName) []string {
	switch {
	case after == nil || s.resource.Name > after.Resource:
		return s.names
	case s.resource.Name < after.Resource:
		return nil
	}
	i, found := slices.BinarySearch(s.names, after.Name)
	if found {
		i++
	}
	return s.names[i:]
}

// filterNames are those of sorted names that the filter may admit, so that looking for one costs little among many.
func filterNames(f quota.ItemFilter, names []string) []string {
	if f.Name == "" {
		return names
	}
	i, found := slices.BinarySearch(names, f.Name)
	if !found {
		return nil
	}
	return names[i : i+1]
}

func matchesItemFilter(f quota.ItemFilter, i quota.ItemInfo) bool {
	return (f.State == "" || f.State == i.State) && (f.Name == "" || f.Name == i.Name) && (f.Owner == "" || f.Owner == i.Owner)
}

// itemInfo copies an item for a reader.
func (inv *inventory) itemInfo(it *item) quota.ItemInfo {
	info := quota.ItemInfo{
		ItemName: quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}, State: it.state, Data: slices.Clone(it.data),
		Expires: it.expires.At, ExpiresWall: it.expires.Wall, Leaving: it.leaving,
	}
	owner, _ := inv.allocations.held.Get(it.owner)
	if owner != nil {
		info.Owner, info.Allocation, info.Fence = owner.principal().User, owner.id, owner.fence
	}
	touched := it.touched(owner)
	info.Updated, info.UpdatedWall = touched.At, touched.Wall
	return info
}

// itemInfos are several items as they are.
func (inv *inventory) itemInfos(list []*item) []quota.ItemInfo {
	infos := make([]quota.ItemInfo, len(list))
	for i, it := range list {
		infos[i] = inv.itemInfo(it)
	}
	return infos
}

// ItemCounts counts the items of resources by state and by owner: of one resource, of all of a tree, or of all trees if
// none is named. NotFound names what does not exist.
func (v View) ItemCounts(tree, resource string) ([]quota.ItemCount, *quota.Error) {
	trees := []string{tree}
	if tree == "" {
		if resource != "" {
			return nil, quota.Errorf(quota.Invalid, "resource", "a resource is one of a tree; name the tree too")
		}
		trees = slices.Sorted(maps.Keys(v.ledger.forest.trees))
	}
	var list []quota.ItemCount
	for _, name := range trees {
		stocks, err := v.ledger.forest.stocks(name, resource)
		if err != nil {
			return nil, err
		}
		for _, s := range stocks {
			list = append(list, v.ledger.allocations.count(s))
		}
	}
	return list, nil
}

func (s *allocations) count(st *stock) quota.ItemCount {
	states, owners := map[string]int{}, map[string]int{}
	for _, it := range st.byName { // sums, in whatever order
		states[it.state]++
		user := ""
		if owner, held := s.held.Get(it.owner); held {
			user = owner.principal().User
		}
		owners[user]++
	}
	return quota.ItemCount{Tree: st.tree, Resource: st.resource.Name, States: namedCounts(states), Owners: namedCounts(owners), Waiting: st.waiting()}
}

// waiting is how many requests wait for items.
func (s *stock) waiting() int {
	n := 0
	for _, ln := range s.resource.lines {
		n += ln.length
	}
	return n
}

func namedCounts(counts map[string]int) []quota.NamedCount {
	list := make([]quota.NamedCount, 0, len(counts))
	for name, n := range counts {
		list = append(list, quota.NamedCount{Name: name, Count: n})
	}
	slices.SortFunc(list, func(a, b quota.NamedCount) int { return strings.Compare(a.Name, b.Name) })
	return list
}
