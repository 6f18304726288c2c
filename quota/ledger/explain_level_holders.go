package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// levelTotals adds up what counts against one limit.
type levelTotals struct {
	violation quota.Violation // without numbers
	// groups are by their names, without amounts.
	groups map[quota.HolderGroup]*quota.HolderGroup
	// largest are one more than may be named, because a resize does not name its own allocation.
	largest []quota.Blocker
	count   int // of the allocations that count, whether or not the asker sees them
	// runs are the applications that count.
	runs map[*run]*applicationHolder
}

// applicationHolder is an application that runs where the number of them is limited.
type applicationHolder struct {
	oldest *quota.Blocker // of its allocations that the asker sees; nil if there is none
	claims int
}

// seenHolder is a held allocation as the asker of a search sees it.
type seenHolder struct {
	*Allocation

	search *blockerSearch
	info   *quota.AllocationInfo // nil until it is needed
	isSeen bool
}

// asBlocker is the allocation with an amount at a node; nil if the asker does not see it.
func (h *seenHolder) asBlocker(node string, amount quota.Amount) *quota.Blocker {
	if h.info == nil {
		info := h.currentInfo()
		h.info, h.isSeen = &info, h.search.reader.sees(&info)
	}
	if !h.isSeen {
		return nil
	}
	b := blockerOf(h.Allocation)
	b.Node, b.Amount, b.Since, b.SinceWall = node, amount, h.info.GrantedAt, h.info.GrantedWall
	b.ExpiresAt = cmp.Or(h.info.ReservedUntil, h.info.ExpiresAt)
	return &b
}

// blockerOf names an allocation, or a request that waits.
func blockerOf(a *Allocation) quota.Blocker {
	p := a.principal()
	return quota.Blocker{ID: a.id, User: p.User, Application: p.Application, Owner: a.owner}
}

// add counts what an allocation has of the limit.
func (t *levelTotals) add(h *seenHolder) {
	if t.violation.Kind == quota.OfApplications {
		t.addRun(h)
		return
	}
	sum, most, node := quota.Amount(0), quota.Amount(0), ""
	for i := range h.claims {
		c := &h.claims[i]
		amount := releasedByClaim(h.Allocation, c, t.violation)
		if amount == 0 {
			continue
		}
		at := c.countedAt(t.violation.Holder).path
		if sum += amount; amount > most {
			most, node = amount, at
		}
		if h.asBlocker(at, amount) != nil {
			t.addToGroup(quota.HolderGroup{Node: at, User: h.principal().User, Owner: h.owner}, amount, 1)
		}
	}
	if sum == 0 {
		return
	}
	t.count++
	if b := h.asBlocker(node, sum); b != nil {
		t.addLargest(*b)
	}
}

func (t *levelTotals) addToGroup(names quota.HolderGroup, amount quota.Amount, claims int) {
	group := t.groups[names]
	if group == nil {
		group = &quota.HolderGroup{Node: names.Node, User: names.User, Owner: names.Owner}
		t.groups[names] = group
	}
	group.Amount += amount
	group.Claims += claims
}

func (t *levelTotals) addLargest(b quota.Blocker) {
	at, _ := slices.BinarySearchFunc(t.largest, b, compareBlockers)
	if at <= quota.MaxBlockers {
		t.largest = slices.Insert(t.largest, at, b)
		t.largest = t.largest[:min(len(t.largest), quota.MaxBlockers+1)]
	}
}

// compareBlockers orders the largest first.
func compareBlockers(a, b quota.Blocker) int {
	return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.ID, b.ID))
}

// addRun notes an application of an allocation. Later calls are for older allocations.
func (t *levelTotals) addRun(h *seenHolder) {
	r, claims := runOf(&h.search.reader.ledger.forest, h.Allocation, t.violation)
	if claims == 0 {
		return
	}
	if t.runs == nil {
		t.runs = map[*run]*applicationHolder{}
	}
	if t.runs[r] == nil {
		t.runs[r] = &applicationHolder{}
	}
	of := t.runs[r]
	if b := h.asBlocker(firstHomeWithin(h.Allocation, t.violation), 1); b != nil {
		of.oldest = b
	}
	of.claims += claims
}

// firstHomeWithin is where the first claim belongs that counts against a limit.
func firstHomeWithin(a *Allocation, v quota.Violation) string {
	for i := range a.claims {
		c := &a.claims[i]
		if at := c.home(); at.treeName == v.Tree && quota.IsWithin(at.path, v.Node) && a.countsFor(c, v.Holder) {
			return at.path
		}
	}
	return ""
}

// addApplications adds the applications to what is listed, after all allocations.
func (t *levelTotals) addApplications() {
	t.count += len(t.runs)
	for _, of := range t.runs { // each adds to sums, and to a list in an order of its own
		if b := of.oldest; b != nil {
			t.addToGroup(quota.HolderGroup{Node: b.Node, User: b.User, Owner: b.Owner}, 1, of.claims)
			t.addLargest(*b)
		}
	}
}

// addTo adds the holders to a limit of which so much is used, for a request with this id.
func (t *levelTotals) addTo(level *quota.LevelHolders, used quota.Amount, id string) {
	level.Others = used
	for _, group := range t.groups { // sorted below
		level.Groups = append(level.Groups, *group)
	}
	slices.SortFunc(level.Groups, func(a, b quota.HolderGroup) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Node, b.Node), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Owner, b.Owner))
	})
	level.Groups = level.Groups[:min(len(level.Groups), quota.MaxHolderGroups)]
	for _, group := range level.Groups {
		level.Others = max(0, level.Others-group.Amount)
	}
	isOwn := func(b quota.Blocker) bool { return b.ID == id }
	level.OtherAllocations = t.count
	if slices.ContainsFunc(t.largest, isOwn) {
		level.OtherAllocations--
	}
	level.Allocations = slices.DeleteFunc(slices.Clone(t.largest), isOwn)
	level.Allocations = level.Allocations[:min(len(level.Allocations), quota.MaxBlockers)]
	level.OtherAllocations -= len(level.Allocations)
}
