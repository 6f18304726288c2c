package ledger

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// allTrees lists all trees by name.
func (r Reader) allTrees() []quota.TreeSummary {
	names := slices.Sorted(maps.Keys(r.ledger.forest.trees))
	list := make([]quota.TreeSummary, len(names))
	for i, name := range names {
		t := r.ledger.forest.trees[name]
		list[i] = quota.TreeSummary{
			Name: name, Policy: t.root.policy.Name, Resources: t.registered(),
			Nodes: len(t.byPath), Claims: t.claims,
		}
	}
	return list
}

// wholeTree returns the configuration of one tree, without dynamic nodes: parents before children, siblings by name.
// The error is NotFound if the tree does not exist.
func (r Reader) wholeTree(name string) (quota.TreeSpec, *quota.Error) {
	t := r.ledger.forest.trees[name]
	if t == nil {
		return quota.TreeSpec{}, quota.Errorf(quota.NotFound, "name", "there is no tree %q", quota.Clip(name))
	}
	return t.present(), nil
}

// wholeConfiguration returns the configuration of all trees, by name.
func (r Reader) wholeConfiguration() []quota.TreeSpec {
	list := make([]quota.TreeSpec, 0, len(r.ledger.forest.trees))
	for _, name := range slices.Sorted(maps.Keys(r.ledger.forest.trees)) {
		list = append(list, r.ledger.forest.trees[name].present())
	}
	return list
}

// allPolicies are the policies that the configuration defines, by name.
func (r Reader) allPolicies() []quota.PolicySpec { return r.ledger.forest.policies.specs }

// policiesOf are those that one tree uses; none if it does not exist.
func (r Reader) policiesOf(tree string) []quota.PolicySpec {
	t := r.ledger.forest.trees[tree]
	if t == nil || len(t.policies.specs) == 0 {
		return nil
	}
	return t.usedPolicies()
}

// anyAllocation returns one allocation: held, waiting, or ended and still remembered.
func (r Reader) anyAllocation(id string) (quota.AllocationInfo, *quota.Error) {
	a := r.ledger.allocations.findByID(id)
	if a == nil {
		return quota.AllocationInfo{}, r.unknownAllocation(id)
	}
	return r.ledger.currentInfo(a), nil
}

// unknownAllocation is the refusal of an id that is not known, or that the reader may not know.
func (r Reader) unknownAllocation(id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately", quota.Clip(id))
}

// allRevisions returns up to max remembered revisions before a number (0: from the newest), newest first.
func (r Reader) allRevisions(before uint64, max int) []quota.Revision {
	var list []quota.Revision
	for _, r := range slices.Backward(r.ledger.history.revisions) {
		if len(list) == max {
			break
		}
		if before == 0 || r.Number < before {
			list = append(list, *r)
		}
	}
	return list
}

// scanned bounds the records visited for one page, so that a reader keeps the lock for a short time only.
const scanned = 10_000

// seenAllocations is Allocations with all that is known of each. Those that the caller does not see count as if they
// did not match.
func (r Reader) seenAllocations(
	f quota.AllocationFilter, afterFence uint64, max int,
) (quota.AllocationPage, *quota.Error) {
	if f.Node != "" && f.Tree == "" {
		return quota.AllocationPage{}, quota.Errorf(quota.Invalid, "node", "a node filter needs a tree too")
	}
	var page quota.AllocationPage
	looked := 0
	for fence, a := range r.ledger.allocations.held.From(afterFence + 1) {
		if len(page.Allocations) == max || looked == scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if !matchesFilter(f, a) {
			continue
		}
		if info := a.currentInfo(); r.sees(&info) {
			page.Allocations = append(page.Allocations, info)
		}
	}
	page.Next = 0
	return page, nil
}

func matchesFilter(f quota.AllocationFilter, a *Allocation) bool {
	return (!f.Leases || a.lease().ttl > 0) && strings.HasPrefix(a.id, f.IDPrefix) && matchesHolder(f, a) &&
		(f.State == nil || a.State() == *f.State) && matchesPlace(f, a) && matchesLabels(f, a)
}

func matchesHolder(f quota.AllocationFilter, a *Allocation) bool {
	p := a.principal()
	return (f.User == "" || f.User == p.User) && (f.Application == "" || f.Application == p.Application) &&
		(f.Owner == "" || f.Owner == a.owner)
}

func matchesPlace(f quota.AllocationFilter, a *Allocation) bool {
	if f.Tree == "" {
		return true
	}
	for _, c := range a.claims {
		if c.at.treeName == f.Tree && quota.IsWithin(c.at.path, f.Node) {
			return true
		}
	}
	return false
}

func matchesLabels(f quota.AllocationFilter, a *Allocation) bool {
	for _, want := range f.Labels {
		found := false
		for _, have := range a.labels() {
			found = found || have == want
		}
		if !found {
			return false
		}
	}
	return true
}

// HeldClaims counts the held claims of a tree at up to max nodes, parents before children, siblings by name. It
// continues after the path that the previous page returned as Next; pass "" and more=false to begin. It visits the
// nodes of the page, and few before them. It needs the right to read usage at the root. The error is NotFound if the
// tree does not exist.
func (r Reader) HeldClaims(tree string, more bool, after string, max int) (quota.HeldClaims, *quota.Error) {
	if err := r.need(access.UsageRead, tree, ""); err != nil {
		return quota.HeldClaims{}, err
	}
	t := r.ledger.forest.trees[tree]
	if t == nil {
		return quota.HeldClaims{}, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var page quota.HeldClaims
	looked := 0
	look := func(n *node) bool {
		if page.More = looked == max; page.More {
			return false
		}
		looked++
		page.Next = n.path
		if n.claims > 0 {
			page.Nodes = append(page.Nodes, quota.NamedCount{Name: n.path, Count: n.claims})
		}
		return true
	}
	if more {
		t.root.walkAfter(after, look)
	} else {
		t.root.walk(look)
	}
	return page, nil
}

// HeldAmounts is what the subtree of a node holds of the first most resources of its tree by name; nothing if there is
// no such node, or the caller may not read its usage. It costs as much as there are resources in the answer.
func (r Reader) HeldAmounts(tree, path string, most int) []quota.HeldAmount {
	if r.FiltersUsage(tree, path) {
		return nil
	}
	t := r.ledger.forest.trees[tree]
	if t == nil || t.byPath[path] == nil {
		return nil
	}
	n := t.byPath[path]
	list := make([]quota.HeldAmount, min(len(t.resources), most))
	for i := range list {
		r := t.resources[i]
		list[i] = quota.HeldAmount{Resource: r.Name, Unit: r.Unit, Used: n.subtree[i], Limit: n.effective(i)}
	}
	return list
}

// walkAfter is walk for the nodes of the subtree that come after a path.
func (n *node) walkAfter(path string, yield func(*node) bool) bool {
	behind := sort.Search(len(n.children), func(i int) bool { return comparePaths(n.children[i].path, path) > 0 })
	if behind > 0 && !n.children[behind-1].walkAfter(path, yield) {
		return false
	}
	for _, child := range n.children[behind:] {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}

// ItemClaims counts, for each itemized resource of a tree with held claims, those claims. It needs the right to read
// usage at the root. The error is NotFound if the tree does not exist.
func (r Reader) ItemClaims(tree string) ([]quota.NamedCount, *quota.Error) {
	if err := r.need(access.UsageRead, tree, ""); err != nil {
		return nil, err
	}
	t := r.ledger.forest.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var list []quota.NamedCount
	for _, r := range t.resources {
		if r.Unit == quota.Items && r.holds > 0 {
			list = append(list, quota.NamedCount{Name: r.Name, Count: r.holds})
		}
	}
	return list, nil
}

// WaitingClaims lists the claims of up to max waiting requests, in the order of the queue, after a turn (nil: from the
// first), of alternatives only the first; next is where to continue, nil on the last page. It visits the requests of
// the page only. There are none for a caller who may not read holders on the whole cluster.
func (r Reader) WaitingClaims(after *quota.QueueTurn, max int) (list []quota.WaitingClaim, next *quota.QueueTurn) {
	if r.FiltersHolders() {
		return nil, nil
	}
	from := rankqueue.First()
	if after != nil {
		from = rankqueue.Rank(*after).Next()
	}
	looked, last := 0, quota.QueueTurn(from)
	for w := range r.ledger.queue.all.From(from) {
		if looked == max {
			return list, &last
		}
		looked, last = looked+1, quota.QueueTurn(w.turn)
		first := w.alternatives[0]
		for i, wanted := range first.wanted {
			at := first.claims[i].at
			list = append(list, quota.WaitingClaim{
				Tree: at.treeName, Node: at.path, Amounts: r.ledger.awaitedAmounts(first, i), Picks: wanted.Picks,
			})
		}
	}
	return list, nil
}

// allItems returns up to max items that pass the filter, by resource and then by name, after an item (nil: from the
// first). Without data their user data are left out. A page may be short although more follow, because a bounded number
// of items is visited. The error is NotFound if the tree or resource does not exist, or has no items.
func (r Reader) allItems(f quota.ItemFilter, after *quota.ItemName, max int, data bool) (quota.ItemPage, *quota.Error) {
	stocks, err := r.ledger.forest.stocksOf(f.Tree, f.Resource)
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
			info := r.ledger.inventory.itemInfo(s.byName[name])
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

// stocksOf returns the stocks of a tree by resource, or that of one named resource.
func (f *forest) stocksOf(tree, resource string) ([]*stock, *quota.Error) {
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

// filterNames restricts sorted names to those that the filter may admit, so that a search for one name does not visit
// all.
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
	return (f.State == "" || f.State == i.State) && (f.Name == "" || f.Name == i.Name) &&
		(f.Owner == "" || f.Owner == i.Owner)
}

// itemCounts counts the items of resources by state and by owner: of one resource, of all of a tree, or of all trees if
// none is named. The error is NotFound if the tree or resource does not exist.
func (r Reader) itemCounts(tree, resource string) ([]quota.ItemCount, *quota.Error) {
	trees := []string{tree}
	if tree == "" {
		if resource != "" {
			return nil, quota.Errorf(quota.Invalid, "resource", "a resource is one of a tree; name the tree too")
		}
		trees = slices.Sorted(maps.Keys(r.ledger.forest.trees))
	}
	var list []quota.ItemCount
	for _, name := range trees {
		stocks, err := r.ledger.forest.stocksOf(name, resource)
		if err != nil {
			return nil, err
		}
		for _, s := range stocks {
			list = append(list, r.ledger.allocations.countItems(s))
		}
	}
	return list, nil
}

func (s *allocations) countItems(st *stock) quota.ItemCount {
	states, owners := map[string]int{}, map[string]int{}
	for _, it := range st.byName { // a sum does not depend on the order
		states[it.state]++
		user := ""
		if owner, held := s.held.Get(it.owner); held {
			user = owner.principal().User
		}
		owners[user]++
	}
	return quota.ItemCount{
		Tree: st.tree, Resource: st.resource.Name, States: namedCounts(states),
		Owners: namedCounts(owners), Waiting: st.waiting(),
	}
}

// waiting is the number of requests that wait for the items.
func (s *stock) waiting() int {
	n := 0
	for _, bq := range s.resource.queues {
		n += bq.waiters.Len()
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

// requestCounts counts, by tree, the requests that wait and those denied lately.
func (r Reader) requestCounts() map[string]quota.RequestCounts {
	counts := map[string]quota.RequestCounts{}
	for _, w := range r.ledger.queue.byArrival { // see countIn
		for _, tree := range w.trees() {
			count := counts[tree]
			count.Waiting.Add(w.record.more.waiting.since.At)
			counts[tree] = count
		}
	}
	events := r.ledger.journal.events
	for i := len(events) - 1; i >= 0 && events[i].Stamp.At > r.Now()-quota.RecentDenials; i-- {
		if events[i].Kind != quota.EventDenied || events[i].Request == nil {
			continue
		}
		for _, tree := range events[i].Request.TreeNames() {
			count := counts[tree]
			count.Denied++
			counts[tree] = count
		}
	}
	return counts
}
