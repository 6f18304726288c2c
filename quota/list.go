package quota

// scanned bounds how many records one page looks at, so that a reader never keeps the lock for long.
const scanned = 10_000

// Allocations shows up to max held allocations that pass the filter, in the order of their fences, after a fence.
func (v View) Allocations(f AllocationFilter, afterFence uint64, max int) (AllocationPage, *Error) {
	if f.Node != "" && f.Tree == "" {
		return AllocationPage{}, refuse(Invalid, "node", "a node filter needs a tree too")
	}
	var page AllocationPage
	looked := 0
	for fence, a := range v.ledger.held.From(afterFence + 1) {
		if len(page.Allocations) == max || looked == scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if f.admits(a) {
			page.Allocations = append(page.Allocations, a.current())
		}
	}
	page.Next = 0
	return page, nil
}

func (f AllocationFilter) admits(a *Allocation) bool {
	return (!f.Leases || a.lease().ttl > 0) && f.admitsPlace(a) && f.admitsLabels(a)
}

func (f AllocationFilter) admitsPlace(a *Allocation) bool {
	if f.Tree == "" {
		return true
	}
	for _, c := range a.claims {
		if c.at.treeName == f.Tree && within(c.at.path, f.Node) {
			return true
		}
	}
	return false
}

func (f AllocationFilter) admitsLabels(a *Allocation) bool {
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
