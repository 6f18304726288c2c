package ledger

import (
	"slices"

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

	items sizedMap[*item] // by turn
	turn  uint64          // last given to an item
	// trace is nil but while a reservation is decided.
	trace *itemTrace
}

func newInventory(env *environment) inventory {
	return inventory{environment: env, items: newSizedMap[*item](env.bounds.FreeBytes)}
}

// item is one item as it stands. It is never changed after it was made: another record takes its place, so that a frozen
// ledger and a late answer keep what they saw.
type item struct {
	stock *stock
	name  string
	state string
	// turn is its place in the order of age, in which it stands last again whenever state or owner change.
	turn uint64
	// owner is the fence of the allocation that holds it; 0 if nobody does.
	owner uint64
	// updated is when it last changed, but for renewals of its holder; since is when state or owner did.
	updated quota.Stamp
	since   quota.Instant
	// expires is when it goes unless somebody holds it; 0 for never.
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
	// idle are those that nobody holds, by state and then by age.
	idle map[string]*ordmap.Map[*item]
	// number is the last one given to an item on demand.
	number uint64
}

func newStock(tree string, r *resource) *stock {
	return &stock{tree: tree, resource: r, byName: map[string]*item{}, idle: map[string]*ordmap.Map[*item]{}}
}

// idleIn is how many are to be had in a state.
func (s *stock) idleIn(state string) int {
	if m := s.idle[state]; m != nil {
		return m.Len()
	}
	return 0
}

// makeable is how many could be made to be had in a state.
func (s *stock) makeable(state string) int {
	spec := s.resource.Items
	if !spec.OnDemand() || state != spec.InitialState() {
		return 0
	}
	return max(0, spec.Max-len(s.byName))
}

// changeItem puts a record of an item in the place of another. Before it was made it has none, and none when it has gone.
// It can be taken back by changing back.
func (inv *inventory) changeItem(was, is *item) {
	inv.noteItem(was, is)
	if was != nil {
		was.stock.unshelve(was)
		inv.items.Delete(was.turn)
		inv.deadlines.drop(dueKey{dueItem, was.turn})
	}
	switch {
	case was == nil:
		is.stock.enter(is.name)
	case is == nil:
		was.stock.leave(was.name)
		return
	}
	is.stock.byName[is.name] = is
	inv.items.Set(is.turn, is)
	is.stock.shelve(is)
	inv.deadlines.set(dueKey{dueItem, is.turn}, is.dueAt())
}

func (s *stock) enter(name string) {
	i, _ := slices.BinarySearch(s.names, name)
	s.names = slices.Insert(s.names, i, name)
}

func (s *stock) leave(name string) {
	delete(s.byName, name)
	i, _ := slices.BinarySearch(s.names, name)
	s.names = slices.Delete(s.names, i, i+1)
}

// shelve lists an item that nobody holds.
func (s *stock) shelve(it *item) {
	if it.owner != 0 {
		return
	}
	m := s.idle[it.state]
	if m == nil {
		m = &ordmap.Map[*item]{}
		s.idle[it.state] = m
	}
	m.Set(it.turn, it)
}

func (s *stock) unshelve(it *item) {
	if it.owner != 0 {
		return
	}
	m := s.idle[it.state]
	if m.Delete(it.turn); m.Len() == 0 {
		delete(s.idle, it.state)
	}
}

// dueAt is when an item changes by itself; 0 if it does not.
func (it *item) dueAt() quota.Instant {
	if it.owner != 0 {
		return 0
	}
	at := it.expires.At
	if t := it.turnDue(); t != nil && (at == 0 || it.since+quota.Instant(t.After) < at) {
		at = it.since + quota.Instant(t.After)
	}
	return at
}

// turnDue is the turn that waits for the item in its state, or nil.
func (it *item) turnDue() *quota.Turn {
	turns := it.stock.resource.Items.Turns
	if i := slices.IndexFunc(turns, func(t quota.Turn) bool { return t.From == it.state }); i >= 0 {
		return &turns[i]
	}
	return nil
}

// nextTurn is the place of the youngest.
func (inv *inventory) nextTurn() uint64 {
	inv.turn++
	return inv.turn
}

// aged is a copy of the item that changes its state or owner now.
func (inv *inventory) aged(it *item, state string, owner uint64) *item {
	is := *it
	is.state, is.owner, is.turn, is.updated, is.since = state, owner, inv.nextTurn(), inv.now, inv.now.At
	return &is
}
