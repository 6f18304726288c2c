package read

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func (r Reader) allTrees() []quota.TreeSummary {
	names := slices.Sorted(maps.Keys(r.state.Forest.Trees))
	list := make([]quota.TreeSummary, len(names))
	for i, name := range names {
		t := r.state.Forest.Trees[name]
		list[i] = quota.TreeSummary{
			Name: name, Policy: t.Root.Policy.Name, Resources: t.Registered(),
			Nodes: len(t.ByPath), Claims: t.Claims,
		}
	}
	return list
}

// wholeTree leaves out dynamic nodes. It lists parents before children, siblings by name. The error is NotFound if the
// tree does not exist.
func (r Reader) wholeTree(name string) (quota.TreeSpec, *quota.Error) {
	t := r.state.Forest.Trees[name]
	if t == nil {
		return quota.TreeSpec{}, quota.Errorf(quota.NotFound, "name", "there is no tree %q", quota.Clip(name))
	}
	return configure.PresentSpecOf(t), nil
}

// wholeConfiguration is ordered by name.
func (r Reader) wholeConfiguration() []quota.TreeSpec {
	list := make([]quota.TreeSpec, 0, len(r.state.Forest.Trees))
	for _, name := range slices.Sorted(maps.Keys(r.state.Forest.Trees)) {
		list = append(list, configure.PresentSpecOf(r.state.Forest.Trees[name]))
	}
	return list
}

func (r Reader) allPolicies() []quota.PolicySpec { return r.state.Forest.Policies.Specs }

// policiesOf is empty if the tree does not exist.
func (r Reader) policiesOf(tree string) []quota.PolicySpec {
	t := r.state.Forest.Trees[tree]
	if t == nil || len(t.Policies.Specs) == 0 {
		return nil
	}
	return configure.UsedPolicies(t)
}

// anyAllocation returns an allocation that is held, waiting, or ended and still remembered.
func (r Reader) anyAllocation(id string) (quota.AllocationInfo, *quota.Error) {
	a := r.state.Allocations.FindByID(id)
	if a == nil {
		return quota.AllocationInfo{}, r.unknownAllocation(id)
	}
	return admit.CurrentInfo(r.state, a), nil
}

// unknownAllocation is the refusal of an id that is not known, or that the reader may not know.
func (r Reader) unknownAllocation(id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately", quota.Clip(id))
}

// allRevisions returns up to max remembered revisions before a number (0: from the newest), newest first.
func (r Reader) allRevisions(before uint64, max int) []quota.Revision {
	var list []quota.Revision
	for _, r := range slices.Backward(r.state.History.Revisions) {
		if len(list) == max {
			break
		}
		if before == 0 || r.Number < before {
			list = append(list, *r)
		}
	}
	return list
}

// Scanned bounds the records visited for one page, so that a reader keeps the lock for a short time only.
const Scanned = 10_000

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
	for fence, a := range r.state.Allocations.Held.From(afterFence + 1) {
		if len(page.Allocations) == max || looked == Scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if !matchesFilter(f, a) {
			continue
		}
		if info := a.CurrentInfo(); r.Sees(&info) {
			page.Allocations = append(page.Allocations, info)
		}
	}
	page.Next = 0
	return page, nil
}

func matchesFilter(f quota.AllocationFilter, a *state.Allocation) bool {
	return (!f.Leases || a.Lease().TTL > 0) && matchesName(f.Namespace, f.IDPrefix, a.ID()) && matchesHolder(f, a) &&
		(f.State == nil || a.State() == *f.State) && matchesPlace(f, a) && matchesLabels(f, a)
}

// matchesName is true for an id with a beginning in a namespace; an empty one stands for all.
func matchesName(namespace, prefix, qualified string) bool {
	if namespace == "" && prefix == "" {
		return true
	}
	own, id := quota.SplitID(qualified)
	return (namespace == "" || namespace == own) && strings.HasPrefix(id, prefix)
}

func matchesHolder(f quota.AllocationFilter, a *state.Allocation) bool {
	p := a.Principal()
	return (f.User == "" || f.User == p.User) && (f.Application == "" || f.Application == p.Application) &&
		(f.Owner == "" || f.Owner == a.Owner)
}

func matchesPlace(f quota.AllocationFilter, a *state.Allocation) bool {
	if f.Tree == "" {
		return true
	}
	for _, c := range a.Claims {
		if c.At.TreeName == f.Tree && quota.IsWithin(c.At.Path, f.Node) {
			return true
		}
	}
	return false
}

func matchesLabels(f quota.AllocationFilter, a *state.Allocation) bool {
	for _, want := range f.Labels {
		found := false
		for _, have := range a.Labels() {
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
	t := r.state.Forest.Trees[tree]
	if t == nil {
		return quota.HeldClaims{}, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var page quota.HeldClaims
	looked := 0
	look := func(n *state.Node) bool {
		if page.More = looked == max; page.More {
			return false
		}
		looked++
		page.Next = n.Path
		if n.Claims > 0 {
			page.Nodes = append(page.Nodes, quota.NamedCount{Name: n.Path, Count: n.Claims})
		}
		return true
	}
	if more {
		walkAfter(t.Root, after, look)
	} else {
		t.Root.Walk(look)
	}
	return page, nil
}

// HeldAmounts is what the subtree of a node holds of the first most resources of its tree by name; nothing if there is
// no such node, or the caller may not read its usage. It costs as much as there are resources in the answer.
func (r Reader) HeldAmounts(tree, path string, most int) []quota.HeldAmount {
	if r.FiltersUsage(tree, path) {
		return nil
	}
	t := r.state.Forest.Trees[tree]
	if t == nil || t.ByPath[path] == nil {
		return nil
	}
	n := t.ByPath[path]
	list := make([]quota.HeldAmount, min(len(t.Resources), most))
	for i := range list {
		r := t.Resources[i]
		list[i] = quota.HeldAmount{Resource: r.Name, Unit: r.Unit, Used: n.Subtree[i], Limit: n.Effective(i)}
	}
	return list
}

// walkAfter is Walk for the nodes that come after a path.
func walkAfter(n *state.Node, path string, yield func(*state.Node) bool) bool {
	behind := sort.Search(len(n.Children), func(i int) bool { return state.ComparePaths(n.Children[i].Path, path) > 0 })
	if behind > 0 && !walkAfter(n.Children[behind-1], path, yield) {
		return false
	}
	for _, child := range n.Children[behind:] {
		if !child.Walk(yield) {
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
	t := r.state.Forest.Trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var list []quota.NamedCount
	for _, r := range t.Resources {
		if r.Unit == quota.Items && r.Holds > 0 {
			list = append(list, quota.NamedCount{Name: r.Name, Count: r.Holds})
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
	for w := range r.state.Queue.All.From(from) {
		if looked == max {
			return list, &last
		}
		looked, last = looked+1, quota.QueueTurn(w.Turn)
		first := w.Alternatives[0]
		for i, wanted := range first.Wanted {
			at := first.Claims[i].At
			list = append(list, quota.WaitingClaim{
				Tree: at.TreeName, Node: at.Path, Amounts: admit.AwaitedAmounts(r.state, first, i), Picks: wanted.Picks,
			})
		}
	}
	return list, nil
}

// allItems returns up to max items that pass the filter, by resource and then by name, after an item (nil: from the
// first). Without data their user data are left out. A page may be short although more follow, because a bounded number
// of items is visited. The error is NotFound if the tree or resource does not exist, or has no items.
func (r Reader) allItems(f quota.ItemFilter, after *quota.ItemName, max int, data bool) (quota.ItemPage, *quota.Error) {
	stocks, err := stocksOf(&r.state.Forest, f.Tree, f.Resource)
	if err != nil {
		return quota.ItemPage{}, err
	}
	var page quota.ItemPage
	looked := 0
	for _, s := range stocks {
		for _, name := range filterNames(f, namesAfter(s, after)) {
			if len(page.Items) == max || looked == Scanned {
				return page, nil
			}
			looked++
			info := r.state.Inventory.ItemInfo(s.ByName[name])
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

// stocksOf returns all stocks of the tree if no resource is named.
func stocksOf(f *state.Forest, tree, resource string) ([]*state.Stock, *quota.Error) {
	if resource != "" {
		s, err := admit.FindStock(f, tree, resource, "resource")
		return []*state.Stock{s}, err
	}
	t := f.Trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var list []*state.Stock
	for _, r := range t.Resources {
		if r.Stock != nil {
			list = append(list, r.Stock)
		}
	}
	return list, nil
}

func namesAfter(s *state.Stock, after *quota.ItemName) []string {
	switch {
	case after == nil || s.Resource.Name > after.Resource:
		return s.Names
	case s.Resource.Name < after.Resource:
		return nil
	}
	i, found := slices.BinarySearch(s.Names, after.Name)
	if found {
		i++
	}
	return s.Names[i:]
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
		trees = slices.Sorted(maps.Keys(r.state.Forest.Trees))
	}
	var list []quota.ItemCount
	for _, name := range trees {
		stocks, err := stocksOf(&r.state.Forest, name, resource)
		if err != nil {
			return nil, err
		}
		for _, s := range stocks {
			list = append(list, countItems(&r.state.Allocations, s))
		}
	}
	return list, nil
}

func countItems(s *state.Allocations, st *state.Stock) quota.ItemCount {
	states, owners := map[string]int{}, map[string]int{}
	for _, it := range st.ByName { // a sum does not depend on the order
		states[it.State]++
		user := ""
		if owner, held := s.Held.Get(it.Owner); held {
			user = owner.Principal().User
		}
		owners[user]++
	}
	return quota.ItemCount{
		Tree: st.Tree, Resource: st.Resource.Name, States: namedCounts(states),
		Owners: namedCounts(owners), Waiting: countWaitingFor(st),
	}
}

func countWaitingFor(s *state.Stock) int {
	n := 0
	for _, bq := range s.Resource.Queues {
		n += bq.Waiters.Len()
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

func (r Reader) requestCounts() map[string]quota.RequestCounts {
	counts := map[string]quota.RequestCounts{}
	for _, w := range r.state.Queue.ByArrival { // see CountIn
		for _, tree := range w.Trees() {
			count := counts[tree]
			count.Waiting.Add(w.Record.More.Waiting.Since.At)
			counts[tree] = count
		}
	}
	events := r.state.Journal.Events
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
