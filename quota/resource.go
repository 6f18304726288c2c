package quota

import "cmp"

// Unit says what an [Amount] of a resource counts. The numbers are part of the log format.
type Unit uint8

// The closed list of units.
const (
	// Count counts whole things: servers, cores, licences.
	Count Unit = 1
	// Milli counts thousandths: cpu in milli.
	Milli Unit = 2
	// Bytes counts bytes.
	Bytes Unit = 3
	// Items are named.
	Items Unit = 4
)

// String is the unit's word in configuration files.
func (u Unit) String() string {
	switch u {
	case Count:
		return "count"
	case Milli:
		return "milli"
	case Bytes:
		return "bytes"
	case Items:
		return "items"
	}
	return "unknown"
}

// Resource is a registered resource of a tree. A name that is not registered is refused, so that a typo never passes
// silently.
type Resource struct {
	Name string
	Unit Unit
	// Items say which items there are; nil unless the unit is Items. Never changed in place.
	Items *ItemSpec
}

// ItemSpec says which items there are of an itemized resource, and what becomes of them.
type ItemSpec struct {
	// Names are sorted; if there are none, items are made on demand.
	Names []string
	// Min and Max are how many there are on demand.
	Min, Max int
	// Lifespan is how long an item on demand stays after it was last given back, unless somebody holds it; 0 is for ever.
	Lifespan Span
	// State is that of a new item, Released that of one that is given back, both FreeState if empty; Expired that of one
	// whose lease has expired or was taken away, Released if empty.
	State, Released, Expired string
	// TTL of a lease of such an item if the request names none; 0 leaves it to the tree.
	TTL Span
	// Turns are changes of state by time, at most one from each state, sorted by it.
	Turns []Turn
	// Queueing of requests for the items.
	Queueing Queueing
}

// Turn changes the state of an item that nobody holds when it was in it for a while.
type Turn struct {
	From, To string
	After    Span
}

// States that have a meaning.
const (
	// FreeState is what requests ask for that name no other.
	FreeState = "free"
	// LeasedState is what held items are in unless the request names another.
	LeasedState = "leased"
)

// OnDemand is true if items are made when they are needed.
func (s *ItemSpec) OnDemand() bool { return len(s.Names) == 0 }

// MaxItems is how many items there may be.
func (s *ItemSpec) MaxItems() int {
	if s.OnDemand() {
		return s.Max
	}
	return len(s.Names)
}

// InitialState is what a new item is in.
func (s *ItemSpec) InitialState() string { return cmp.Or(s.State, FreeState) }

// ReleasedState is what an item is in after its holder gave it back.
func (s *ItemSpec) ReleasedState() string { return cmp.Or(s.Released, FreeState) }

// ExpiredState is what an item is in after the lease of its holder has expired or was taken away.
func (s *ItemSpec) ExpiredState() string { return cmp.Or(s.Expired, s.ReleasedState()) }
