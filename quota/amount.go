package quota

import "math"

// Amount counts base units of a resource. It is never negative in a ledger.
type Amount int64

// MaxAmount is the largest amount that a request may name, a limit may have or a subtree may hold: 2^62-1. The sum of
// two such amounts does not overflow.
const MaxAmount Amount = math.MaxInt64 / 2

// Plus adds two amounts and saturates instead of overflowing.
func (a Amount) Plus(b Amount) Amount {
	sum := a + b
	if a > 0 && b > 0 && sum < 0 {
		return math.MaxInt64
	}
	return sum
}

// Component is one resource of a [Vector].
type Component struct {
	Resource string
	Amount   Amount
}

// Vector is a list of components, sorted by resource name, each resource at most once.
type Vector []Component
