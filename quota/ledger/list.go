package ledger

import "github.com/quorate/quorate/quota"

// scanned bounds how many records one page looks at, so that a reader never keeps the lock for long.
const scanned = 10_000

// Allocations shows up to max held allocations that pass the filter, in the order of their fences, after a fence.
func (v View) Allocations(f quota.AllocationFilter, afterFence uint64, max int) (quota.AllocationPage, *quota.Error) {
	if f.Node != "" && f.Tree == "" {
		return quota.AllocationPage{}, quota.Errorf(quota.Invalid, "node", "a node filter needs a tree too")
	}
	var page quota.AllocationPage
	looked := 0
	for fence, a := range v.ledger.allocations.held.From(afterFence + 1) {
		if len(page.Allocations) == max || looked == scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if matchesFilter(f, a) {
			page.Allocations = append(page.Allocations, a.current())
		}
	}
	page.Next = 0
	return page, nil
}

func matchesFilter(f quota.AllocationFilter, a *Allocation) bool {
	return (!f.Leases || a.lease().ttl > 0) && matchesPlace(f, a) && matchesLabels(f, a)
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
		for _, have := range a.labels {
			found = found || have == want
		}
		if !found {
			return false
		}
	}
	return true
}
