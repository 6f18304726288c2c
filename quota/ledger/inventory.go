package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
)

// inventory owns the items.
type inventory struct {
	*environment
	deadlines   *deadlines
	forest      *forest
	allocations *allocations
	queue       *waitQueue

	items        sizedMap[*item] // by stateSeq
	lastStateSeq uint64          // last assigned
	// trace records changes of items while a reservation is decided; nil otherwise.
	trace *itemTrace
}

func newInventory(env *environment) inventory {
	return inventory{environment: env, items: newSizedMap[*item](env.bounds.FreeBytes)}
}

// item is the immutable record of one item. A change replaces it, so that a snapshot or a late answer keeps what it
// saw.
type item struct {
	stock *stock
	name  string
	state string
	// stateSeq is the item's place in the order of age. It becomes the last whenever state or owner change.
	stateSeq uint64
	// owner is the fence of the allocation that holds the item; 0 if it is idle.
	owner uint64
	// updated is the time of the last change other than a renewal; since is when state or owner last changed.
	updated quota.Stamp
	since   quota.Instant
	// expires is when the item is removed unless it is held; 0 for never.
	expires quota.Stamp
	data    []quota.Label
	// leaving is true for a held item that is not configured any more.
	leaving bool
}

// stock is the items of one resource.
type stock struct {
	tree     string
	resource *resource
	byName   map[string]*item
	names    []string // sorted
	// idle has the items that are not held, by state and then by age.
	idle map[string]*ordmap.Map[*item]
	// leaving is the number of held items that leave.
	leaving int
	// number is the last one assigned to an item created on demand.
	number uint64
	// changed is the index of the last entry that changed an item, see Reader.Changes.
	changed uint64
}

func newStock(tree string, r *resource) *stock {
	return &stock{tree: tree, resource: r, byName: map[string]*item{}, idle: map[string]*ordmap.Map[*item]{}}
}

// idleIn is the number of idle items in a state.
func (s *stock) idleIn(state string) int {
	if m := s.idle[state]; m != nil {
		return m.Len()
	}
	return 0
}

// creatableIn is the number of items that could be created in a state.
func (s *stock) creatableIn(state string) int {
	spec := s.resource.Items
	if !spec.OnDemand() || state != spec.InitialState() {
		return 0
	}
	return max(0, spec.Max-len(s.byName))
}

func (s *stock) countLeaving(it *item, n int) {
	if it.leaving {
		s.leaving += n
	}
}

func (s *stock) addItem(name string) {
	i, _ := slices.BinarySearch(s.names, name)
	s.names = slices.Insert(s.names, i, name)
}

func (s *stock) removeItem(name string) {
	delete(s.byName, name)
	i, _ := slices.BinarySearch(s.names, name)
	s.names = slices.Delete(s.names, i, i+1)
}

// addIdle indexes an idle item.
func (s *stock) addIdle(it *item) {
	if it.owner != 0 {
		return
	}
	m := s.idle[it.state]
	if m == nil {
		m = &ordmap.Map[*item]{}
		s.idle[it.state] = m
	}
	m.Set(it.stateSeq, it)
}

func (s *stock) removeIdle(it *item) {
	if it.owner != 0 {
		return
	}
	m := s.idle[it.state]
	if m.Delete(it.stateSeq); m.Len() == 0 {
		delete(s.idle, it.state)
	}
}

// dueAt is when the item changes without a command; 0 for never.
func (it *item) dueAt() quota.Instant {
	if it.owner != 0 {
		return 0
	}
	at := it.expires.At
	if t := it.stateDeadline(); t != nil && (at == 0 || it.since+quota.Instant(t.After) < at) {
		at = it.since + quota.Instant(t.After)
	}
	return at
}

// stateDeadline is the turn that applies to the item's state, or nil.
func (it *item) stateDeadline() *quota.Turn {
	turns := it.stock.resource.Items.Turns
	if i := slices.IndexFunc(turns, func(t quota.Turn) bool { return t.From == it.state }); i >= 0 {
		return &turns[i]
	}
	return nil
}

// nextStateSeq assigns the next place in the order of age.
func (inv *inventory) nextStateSeq() uint64 {
	inv.lastStateSeq++
	return inv.lastStateSeq
}

// withNewState is a copy of the item with a state and owner from now on.
func (inv *inventory) withNewState(it *item, state string, owner uint64) *item {
	is := *it
	is.state, is.owner, is.stateSeq, is.updated, is.since = state, owner, inv.nextStateSeq(), inv.now, inv.now.At
	return &is
}

// claimItems are the items of a claim.
type claimItems struct {
	picks []quota.Pick // as requested
	held  []heldItem   // by resource and name
}

// heldItem is an item in an allocation.
type heldItem struct {
	resource, name string
	// is the item as of this record; nil in a tombstone.
	is *item
}

// picks are the requested items.
func (c *placedClaim) picks() []quota.Pick {
	if c.more == nil || c.more.items == nil {
		return nil
	}
	return c.more.items.picks
}

// heldItems are the items that the claim holds, or held when it ended.
func (c *placedClaim) heldItems() []heldItem {
	if c.more == nil || c.more.items == nil {
		return nil
	}
	return c.more.items.held
}

// setItems replaces the claim's list of items without changing that of other records.
func (c *placedClaim) setItems(picks []quota.Pick, held []heldItem) {
	more := claimDetails{}
	if c.more != nil {
		more = *c.more
	}
	more.items = &claimItems{picks: picks, held: held}
	c.more = &more
}

func (a *Allocation) wantsItems() bool {
	for i := range a.claims {
		if len(a.claims[i].picks()) > 0 {
			return true
		}
	}
	return false
}

// countedAmounts are the amounts of resources that are not itemized.
func (c *placedClaim) countedAmounts() []placedAmount {
	if len(c.picks()) == 0 {
		return c.amounts
	}
	return slices.DeleteFunc(slices.Clone(c.amounts),
		func(p placedAmount) bool { return p.resource.Unit == quota.Items })
}

func samePick(p, other quota.Pick) bool {
	return p.Resource == other.Resource && p.Count == other.Count && p.State == other.State &&
		p.HeldState == other.HeldState && slices.Equal(p.Names, other.Names)
}

// pickOf is the pick that requested an item of the claim.
func (c *placedClaim) pickOf(resource string) quota.Pick {
	i, found := slices.BinarySearchFunc(c.picks(), resource,
		func(p quota.Pick, name string) int { return strings.Compare(p.Resource, name) })
	if !found {
		return quota.Pick{}
	}
	return c.picks()[i]
}

// unusedItemState is the state of an item that an unconfirmed reservation returns: the state in which it was found. If
// that is not known, the item counts as used.
func unusedItemState(p quota.Pick, s *quota.ItemSpec) string {
	return cmp.Or(p.WantedState(), s.ExpiredState())
}

func compareHeld(a, b heldItem) int {
	return cmp.Or(strings.Compare(a.resource, b.resource), strings.Compare(a.name, b.name))
}

// forgetItems reduces the items of a tombstone to their names.
func (a *Allocation) forgetItems() {
	if !a.wantsItems() {
		return
	}
	a.claims = slices.Clone(a.claims)
	for i := range a.claims {
		c := &a.claims[i]
		if len(c.heldItems()) == 0 {
			continue
		}
		names := slices.Clone(c.heldItems())
		for j := range names {
			names[j].is = nil
		}
		c.setItems(c.picks(), names)
	}
}

// itemsOf copies the items of a claim for a reader; those of a tombstone are names only.
func (a *Allocation) itemsOf(i int) []quota.HeldItem {
	held := a.claims[i].heldItems()
	if len(held) == 0 {
		return nil
	}
	list := make([]quota.HeldItem, len(held))
	for j, h := range held {
		list[j] = quota.HeldItem{Resource: h.resource, Name: h.name}
		if h.is != nil {
			list[j].State, list[j].Data = h.is.state, slices.Clone(h.is.data)
			list[j].UpdatedWall = h.is.touched(a).Wall
		}
	}
	return list
}

// touched is when an item last changed, or when its owner, which may be nil, last renewed.
func (it *item) touched(owner *Allocation) quota.Stamp {
	if owner != nil && owner.lease().touched.At > it.updated.At {
		return owner.lease().touched
	}
	return it.updated
}

// ItemImage is one item. Its holder follows from the held allocations.
type ItemImage struct {
	quota.ItemName
	State string
	// Turn is the item's place in the order of age.
	Turn uint64
	// Updated is the time of the last change, Since when state or owner last changed.
	Updated quota.Stamp
	Since   quota.Instant
	// Expires is when the item is removed; its wall-clock time is for people.
	Expires quota.Stamp
	Data    []quota.Label
	Leaving bool
}

// itemInfo copies an item for a reader.
func (inv *inventory) itemInfo(it *item) quota.ItemInfo {
	info := quota.ItemInfo{
		ItemName: quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}, State: it.state,
		Data:    slices.Clone(it.data),
		Expires: it.expires.At, ExpiresWall: it.expires.Wall, Leaving: it.leaving,
	}
	owner, _ := inv.allocations.held.Get(it.owner)
	if owner != nil {
		info.Owner, info.Allocation, info.Fence = owner.principal().User, owner.id, owner.fence
		info.HeldUntil = owner.expiresAt()
	}
	touched := it.touched(owner)
	info.Updated, info.UpdatedWall = touched.At, touched.Wall
	return info
}

// itemInfos copies several items for a reader.
func (inv *inventory) itemInfos(list []*item) []quota.ItemInfo {
	infos := make([]quota.ItemInfo, len(list))
	for i, it := range list {
		infos[i] = inv.itemInfo(it)
	}
	return infos
}
