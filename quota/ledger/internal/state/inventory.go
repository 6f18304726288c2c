package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
)

// Inventory owns the items.
type Inventory struct {
	*Environment
	Deadlines   *deadlines
	Forest      *Forest
	Allocations *Allocations
	Queue       *WaitQueue

	Items        sizedMap[*Item] // by StateSeq
	LastStateSeq uint64          // last assigned
	// Trace records changes of items while a reservation is decided; nil otherwise.
	Trace *ItemTrace
}

func newInventory(env *Environment) Inventory {
	return Inventory{Environment: env, Items: newSizedMap[*Item](env.Bounds.FreeBytes)}
}

// Item is the immutable record of one item. A change replaces it, so that a snapshot or a late answer keeps what it
// saw.
type Item struct {
	Stock *Stock
	Name  string
	State string
	// StateSeq is the item's place in the order of age. It becomes the last whenever state or owner change.
	StateSeq uint64
	// Owner is the fence of the allocation that holds the item; 0 if it is idle.
	Owner uint64
	// Updated is the time of the last change other than a renewal; Since is when state or owner last changed.
	Updated quota.Stamp
	Since   quota.Instant
	// Expires is when the item is removed unless it is held; 0 for never.
	Expires quota.Stamp
	Data    []quota.Label
	// Leaving is true for a held item that is not configured any more.
	Leaving bool
}

// Stock is the items of one resource.
type Stock struct {
	Tree     string
	Resource *Resource
	ByName   map[string]*Item
	Names    []string // sorted
	// Idle has the items that are not held, by state and then by age.
	Idle map[string]*ordmap.Map[*Item]
	// Leaving is the number of held items that leave.
	Leaving int
	// Number is the last one assigned to an item created on demand.
	Number uint64
	// Changed is the index of the last entry that changed an item, see Reader.Changes.
	Changed uint64
}

func NewStock(tree string, r *Resource) *Stock {
	return &Stock{Tree: tree, Resource: r, ByName: map[string]*Item{}, Idle: map[string]*ordmap.Map[*Item]{}}
}

// IdleIn is the number of idle items in a state.
func (s *Stock) IdleIn(itemState string) int {
	if m := s.Idle[itemState]; m != nil {
		return m.Len()
	}
	return 0
}

// CreatableIn is the number of items that could be created in a state.
func (s *Stock) CreatableIn(itemState string) int {
	spec := s.Resource.Items
	if !spec.OnDemand() || itemState != spec.InitialState() {
		return 0
	}
	return max(0, spec.Max-len(s.ByName))
}

func (s *Stock) CountLeaving(it *Item, n int) {
	if it.Leaving {
		s.Leaving += n
	}
}

func (s *Stock) AddItem(name string) {
	i, _ := slices.BinarySearch(s.Names, name)
	s.Names = slices.Insert(s.Names, i, name)
}

func (s *Stock) RemoveItem(name string) {
	delete(s.ByName, name)
	i, _ := slices.BinarySearch(s.Names, name)
	s.Names = slices.Delete(s.Names, i, i+1)
}

// AddIdle indexes an idle item.
func (s *Stock) AddIdle(it *Item) {
	if it.Owner != 0 {
		return
	}
	m := s.Idle[it.State]
	if m == nil {
		m = &ordmap.Map[*Item]{}
		s.Idle[it.State] = m
	}
	m.Set(it.StateSeq, it)
}

func (s *Stock) RemoveIdle(it *Item) {
	if it.Owner != 0 {
		return
	}
	m := s.Idle[it.State]
	if m.Delete(it.StateSeq); m.Len() == 0 {
		delete(s.Idle, it.State)
	}
}

// DueAt is when the item changes without a command; 0 for never.
func (it *Item) DueAt() quota.Instant {
	if it.Owner != 0 {
		return 0
	}
	at := it.Expires.At
	if t := it.StateDeadline(); t != nil && (at == 0 || it.Since+quota.Instant(t.After) < at) {
		at = it.Since + quota.Instant(t.After)
	}
	return at
}

// StateDeadline is the turn that applies to the item's state, or nil.
func (it *Item) StateDeadline() *quota.Turn {
	turns := it.Stock.Resource.Items.Turns
	if i := slices.IndexFunc(turns, func(t quota.Turn) bool { return t.From == it.State }); i >= 0 {
		return &turns[i]
	}
	return nil
}

func (inv *Inventory) nextStateSeq() uint64 {
	inv.LastStateSeq++
	return inv.LastStateSeq
}

// WithNewState is a copy of the item with a state and owner from now on.
func (inv *Inventory) WithNewState(it *Item, itemState string, owner uint64) *Item {
	updated := *it
	updated.State, updated.Owner, updated.StateSeq = itemState, owner, inv.nextStateSeq()
	updated.Updated, updated.Since = inv.Now, inv.Now.At
	return &updated
}

type claimItems struct {
	picks []quota.Pick // as requested
	Held  []HeldItem   // by resource and name
}

// HeldItem is an item in an allocation.
type HeldItem struct {
	Resource, Name string
	// Is the item as of this record; nil in a tombstone.
	Is *Item
}

// Picks are the requested items.
func (c *PlacedClaim) Picks() []quota.Pick {
	if c.More == nil || c.More.Items == nil {
		return nil
	}
	return c.More.Items.picks
}

// HeldItems are the items that the claim holds, or held when it ended.
func (c *PlacedClaim) HeldItems() []HeldItem {
	if c.More == nil || c.More.Items == nil {
		return nil
	}
	return c.More.Items.Held
}

// SetItems replaces the claim's list of items without changing that of other records.
func (c *PlacedClaim) SetItems(picks []quota.Pick, held []HeldItem) {
	more := ClaimDetails{}
	if c.More != nil {
		more = *c.More
	}
	more.Items = &claimItems{picks: picks, Held: held}
	c.More = &more
}

func (a *Allocation) WantsItems() bool {
	for i := range a.Claims {
		if len(a.Claims[i].Picks()) > 0 {
			return true
		}
	}
	return false
}

// countedAmounts are the amounts of resources that are not itemized.
func (c *PlacedClaim) countedAmounts() []PlacedAmount {
	if len(c.Picks()) == 0 {
		return c.Amounts
	}
	return slices.DeleteFunc(slices.Clone(c.Amounts),
		func(p PlacedAmount) bool { return p.Resource.Unit == quota.Items })
}

func samePick(p, other quota.Pick) bool {
	return p.Resource == other.Resource && p.Count == other.Count && p.State == other.State &&
		p.HeldState == other.HeldState && slices.Equal(p.Names, other.Names)
}

// PickOf is the pick that requested an item of the claim.
func (c *PlacedClaim) PickOf(resource string) quota.Pick {
	i, found := slices.BinarySearchFunc(c.Picks(), resource,
		func(p quota.Pick, name string) int { return strings.Compare(p.Resource, name) })
	if !found {
		return quota.Pick{}
	}
	return c.Picks()[i]
}

// UnusedItemState is the state of an item that an unconfirmed reservation returns: the state in which it was found. If
// that is not known, the item counts as used.
func UnusedItemState(p quota.Pick, s *quota.ItemSpec) string {
	return cmp.Or(p.WantedState(), s.ExpiredState())
}

func CompareHeld(a, b HeldItem) int {
	return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Name, b.Name))
}

// ForgetItems reduces the items of a tombstone to their names.
func (a *Allocation) ForgetItems() {
	if !a.WantsItems() {
		return
	}
	a.Claims = slices.Clone(a.Claims)
	for i := range a.Claims {
		c := &a.Claims[i]
		if len(c.HeldItems()) == 0 {
			continue
		}
		names := slices.Clone(c.HeldItems())
		for j := range names {
			names[j].Is = nil
		}
		c.SetItems(c.Picks(), names)
	}
}

// itemsOf copies the items of a claim for a reader; those of a tombstone are names only.
func (a *Allocation) itemsOf(i int) []quota.HeldItem {
	held := a.Claims[i].HeldItems()
	if len(held) == 0 {
		return nil
	}
	list := make([]quota.HeldItem, len(held))
	for j, h := range held {
		list[j] = quota.HeldItem{Resource: h.Resource, Name: h.Name}
		if h.Is != nil {
			list[j].State, list[j].Data = h.Is.State, slices.Clone(h.Is.Data)
			list[j].UpdatedWall = h.Is.Touched(a).Wall
		}
	}
	return list
}

// Touched is when an item last changed, or when its owner, which may be nil, last renewed.
func (it *Item) Touched(owner *Allocation) quota.Stamp {
	if owner != nil && owner.Lease().Touched.At > it.Updated.At {
		return owner.Lease().Touched
	}
	return it.Updated
}

// ItemImage is one item. Its holder follows from the held allocations.
type ItemImage struct {
	quota.ItemName
	State string
	// StateSeq is the item's place in the order of age.
	StateSeq uint64
	// Updated is the time of the last change, Since when state or owner last changed.
	Updated quota.Stamp
	Since   quota.Instant
	// Expires is when the item is removed; its wall-clock time is for people.
	Expires quota.Stamp
	Data    []quota.Label
	Leaving bool
}

// ItemInfo copies an item for a reader.
func (inv *Inventory) ItemInfo(it *Item) quota.ItemInfo {
	info := quota.ItemInfo{
		ItemName: quota.ItemName{Tree: it.Stock.Tree, Resource: it.Stock.Resource.Name, Name: it.Name}, State: it.State,
		Data:    slices.Clone(it.Data),
		Expires: it.Expires.At, ExpiresWall: it.Expires.Wall, Leaving: it.Leaving,
	}
	owner, _ := inv.Allocations.Held.Get(it.Owner)
	if owner != nil {
		info.Owner, info.Allocation, info.Fence = owner.Principal().User, owner.id, owner.fence
		info.HeldUntil = owner.expiresAt()
	}
	touched := it.Touched(owner)
	info.Updated, info.UpdatedWall = touched.At, touched.Wall
	return info
}

// ItemInfos copies several items for a reader.
func (inv *Inventory) ItemInfos(list []*Item) []quota.ItemInfo {
	infos := make([]quota.ItemInfo, len(list))
	for i, it := range list {
		infos[i] = inv.ItemInfo(it)
	}
	return infos
}

// IsRetired is true for an idle item that waits for a cleaner.
func (it *Item) IsRetired() bool {
	return it.Owner == 0 && it.State == it.Stock.Resource.Items.Retired
}
