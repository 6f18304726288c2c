package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// indexChain are the steps whose index is known, in the order of the log: an order of all steps can only be one that has these in
// this order. So they leave nothing to search, and they narrow down when every other step can have happened.
type indexChain struct {
	keys []uint64
	// lastCalls is when the last of the links up to each was called, back when the first of those from each on was answered:
	// what stands in the log behind an entry happened after whatever was called before that entry.
	lastCalls, firstReturns []int64
}

// constrainByIndex numbers steps by the links around them, and narrows their times down. It leaves the times of a step alone that
// contradict the order of the log: then there is no order, and the search finds that.
func constrainByIndex(steps []porcupine.Operation) {
	c := newIndexChain(steps)
	for i := range steps {
		s, _ := steps[i].Input.(*modelStep)
		s.minPredecessors, s.maxPredecessors = c.countBelow(s.minKey), c.countUpTo(s.maxKey)
		called, back := max(steps[i].Call, c.lastCallUpTo(s.minKey)), min(steps[i].Return, c.firstReturnFrom(s.maxKey))
		if called <= back {
			steps[i].Call, steps[i].Return = called, back
		}
	}
}

func newIndexChain(steps []porcupine.Operation) indexChain {
	known := slices.DeleteFunc(slices.Clone(steps), func(o porcupine.Operation) bool {
		s, _ := o.Input.(*modelStep)
		return !s.hasKnownIndex()
	})
	keyOf := func(o porcupine.Operation) uint64 {
		s, _ := o.Input.(*modelStep)
		return s.minKey
	}
	slices.SortFunc(known, func(a, b porcupine.Operation) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	c := indexChain{lastCalls: make([]int64, len(known)), firstReturns: make([]int64, len(known))}
	last, first := int64(math.MinInt64), int64(math.MaxInt64)
	for i, o := range known {
		c.keys = append(c.keys, keyOf(o))
		last = max(last, o.Call)
		c.lastCalls[i] = last
	}
	for i, o := range slices.Backward(known) {
		first = min(first, o.Return)
		c.firstReturns[i] = first
	}
	return c
}

// countBelow is how many links there are before a key.
func (c indexChain) countBelow(key uint64) int {
	i, _ := slices.BinarySearch(c.keys, key)
	return i
}

// countUpTo is how many links there are before a key and at it.
func (c indexChain) countUpTo(key uint64) int {
	if key == math.MaxUint64 {
		return len(c.keys)
	}
	return c.countBelow(key + 1)
}

// lastCallUpTo is when the last link up to a key was called.
func (c indexChain) lastCallUpTo(key uint64) int64 {
	if i := c.countUpTo(key); i > 0 {
		return c.lastCalls[i-1]
	}
	return math.MinInt64
}

// firstReturnFrom is when the first link from a key on was answered.
func (c indexChain) firstReturnFrom(key uint64) int64 {
	if i := c.countBelow(key); i < len(c.keys) {
		return c.firstReturns[i]
	}
	return math.MaxInt64
}
