package explain

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
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
	runs map[*state.Run]*applicationHolder
}

type applicationHolder struct {
	oldest *quota.Blocker // of its allocations that the asker sees; nil if there is none
	claims int
}

// seenHolder is a held allocation as the asker of a search sees it.
type seenHolder struct {
	*state.Allocation

	search *blockerSearch
	info   *quota.AllocationInfo // nil until it is needed
	isSeen bool
}

// asBlocker is nil if the asker does not see the allocation.
func (h *seenHolder) asBlocker(node string, amount quota.Amount) *quota.Blocker {
	if h.info == nil {
		info := h.CurrentInfo()
		h.info, h.isSeen = &info, h.search.reader.Sees(&info)
	}
	if !h.isSeen {
		return nil
	}
	b := blockerOf(h.Allocation)
	b.Node, b.Amount, b.Since, b.SinceWall = node, amount, h.info.GrantedAt, h.info.GrantedWall
	b.ExpiresAt = cmp.Or(h.info.ReservedUntil, h.info.ExpiresAt)
	return &b
}

func blockerOf(a *state.Allocation) quota.Blocker {
	p := a.Principal()
	return quota.Blocker{ID: a.ID(), User: p.User, Application: p.Application, Owner: a.Owner}
}

func (t *levelTotals) add(h *seenHolder) {
	if t.violation.Kind == quota.OfApplications {
		t.addRun(h)
		return
	}
	sum, most, node := quota.Amount(0), quota.Amount(0), ""
	for i := range h.Claims {
		c := &h.Claims[i]
		amount := releasedByClaim(h.Allocation, c, t.violation)
		if amount == 0 {
			continue
		}
		at := c.CountedAt(t.violation.Holder).Path
		if sum += amount; amount > most {
			most, node = amount, at
		}
		if h.asBlocker(at, amount) != nil {
			t.addToGroup(quota.HolderGroup{Node: at, User: h.Principal().User, Owner: h.Owner}, amount, 1)
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

func compareBlockers(a, b quota.Blocker) int {
	return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.ID, b.ID))
}

// addRun must be called for the newest allocation first.
func (t *levelTotals) addRun(h *seenHolder) {
	r, claims := runOf(&read.StateOf(h.search.reader).Forest, h.Allocation, t.violation)
	if claims == 0 {
		return
	}
	if t.runs == nil {
		t.runs = map[*state.Run]*applicationHolder{}
	}
	if t.runs[r] == nil {
		t.runs[r] = &applicationHolder{}
	}
	holder := t.runs[r]
	if b := h.asBlocker(firstHomeWithin(h.Allocation, t.violation), 1); b != nil {
		holder.oldest = b
	}
	holder.claims += claims
}

// firstHomeWithin is where the first claim belongs that counts against the limit.
func firstHomeWithin(a *state.Allocation, v quota.Violation) string {
	for i := range a.Claims {
		c := &a.Claims[i]
		if at := c.Home(); at.TreeName == v.Tree && quota.IsWithin(at.Path, v.Node) && a.CountsFor(c, v.Holder) {
			return at.Path
		}
	}
	return ""
}

func (t *levelTotals) addApplications() {
	t.count += len(t.runs)
	for _, holder := range t.runs { // each adds to sums, and to a list in an order of its own
		if b := holder.oldest; b != nil {
			t.addToGroup(quota.HolderGroup{Node: b.Node, User: b.User, Owner: b.Owner}, 1, holder.claims)
			t.addLargest(*b)
		}
	}
}

// addTo takes as used how much of the limit is used.
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
