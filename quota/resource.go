package quota

import (
	"cmp"
	"strconv"
)

// Unit is the unit of a resource's amounts. The numbers are part of the log format.
type Unit uint8

// The closed list of units.
const (
	// Count counts whole things: servers, cores, licences.
	Count Unit = 1
	// Milli counts thousandths, for example of a CPU.
	Milli Unit = 2
	// Bytes counts bytes.
	Bytes Unit = 3
	// Items counts named items.
	Items Unit = 4
)

// String is the unit's name in configuration files.
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

// suffixes are powers of thousand and of 1024, in the order in which FormatAmount prefers them.
var suffixes = []struct {
	name   string
	factor Amount
}{
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
	{"P", 1e15},
	{"E", 1e18},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"Ei", 1 << 60},
}

// FormatAmount writes an amount exactly and as people write it: bytes with the suffix that leaves the fewest digits,
// such as 16Gi, thousandths as 500m or as whole numbers, other units as they are. quantity.Format writes the
// same.
func FormatAmount(amount Amount, unit Unit) string {
	best := strconv.FormatInt(int64(amount), 10)
	switch {
	case unit == Milli && amount%1000 == 0:
		return strconv.FormatInt(int64(amount/1000), 10)
	case unit == Milli:
		return best + "m"
	case unit != Bytes || amount == 0:
		return best
	}
	for _, s := range suffixes {
		if text := strconv.FormatInt(int64(amount/s.factor), 10) + s.name; amount%s.factor == 0 && len(text) < len(best) {
			best = text
		}
	}
	return best
}

// Resource is a registered resource of a tree. Requests for an unregistered name are refused, which catches typos.
type Resource struct {
	Name string
	Unit Unit
	// Items specifies the items; nil unless the unit is Items. It is never changed in place.
	Items *ItemSpec
}

// ItemSpec specifies the items of a resource and their states.
type ItemSpec struct {
	// Names are sorted; if empty, items are created on demand.
	Names []string
	// Min and Max bound the number of items created on demand.
	Min, Max int
	// Lifespan is how long an idle item created on demand exists after it was last returned; 0 is for ever.
	Lifespan Span
	// State is the state of a new item; Released that of a returned item, both FreeState if empty. Expired is the state of
	// an item whose lease expired or was revoked; Released if empty.
	State, Released, Expired string
	// Retired is the state of idle items created on demand that are too many or whose lifespan is over, until a cleaner
	// brings them into the state Removed, in which idle items are removed. Both are empty if such items are removed at
	// once.
	Retired, Removed string
	// TTL is the default for leases of such items; 0 takes the default of the tree.
	TTL Span
	// Turns are timed changes of state, at most one from each state, sorted by From.
	Turns []Turn
	// Queueing of requests for the items.
	Queueing Queueing
}

// Turn changes the state of an idle item that has been in the state From for a while.
type Turn struct {
	From, To string
	After    Span
}

// States with a predefined meaning.
const (
	// FreeState is the state requested by default.
	FreeState = "free"
	// LeasedState is the default state of held items.
	LeasedState = "leased"
)

// OnDemand is true if items are created when needed.
func (s *ItemSpec) OnDemand() bool { return len(s.Names) == 0 }

// MaxItems is the largest number of items.
func (s *ItemSpec) MaxItems() int {
	if s.OnDemand() {
		return s.Max
	}
	return len(s.Names)
}

// InitialState is the state of a new item.
func (s *ItemSpec) InitialState() string { return cmp.Or(s.State, FreeState) }

// ReleasedState is the state of an item that its holder returned.
func (s *ItemSpec) ReleasedState() string { return cmp.Or(s.Released, FreeState) }

// ExpiredState is the state of an item whose lease expired or was revoked.
func (s *ItemSpec) ExpiredState() string { return cmp.Or(s.Expired, s.ReleasedState()) }
