package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// indexChain holds the steps whose log index is known, in log order. Every valid linearization has them in this
// order, so the search need not try others; and they bound when every other step can have happened.
type indexChain struct {
	keys []uint64
	// lastCalls[i] is when the last of the steps 0 to i was called, firstReturns[i] when the first of the steps from
	// i on returned. A later entry of the log took effect after every earlier one was called.
	lastCalls, firstReturns []int64
}

// constrainByIndex bounds the position of each step in the chain and narrows its times accordingly. A step whose
// times contradict the log keeps them: then there is no linearization, and the search finds that out.
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

func (c indexChain) countBelow(key uint64) int {
	i, _ := slices.BinarySearch(c.keys, key)
	return i
}

func (c indexChain) countUpTo(key uint64) int {
	if key == math.MaxUint64 {
		return len(c.keys)
	}
	return c.countBelow(key + 1)
}

func (c indexChain) lastCallUpTo(key uint64) int64 {
	if i := c.countUpTo(key); i > 0 {
		return c.lastCalls[i-1]
	}
	return math.MinInt64
}

// firstReturnFrom returns when the first step at or after a key returned.
func (c indexChain) firstReturnFrom(key uint64) int64 {
	if i := c.countBelow(key); i < len(c.keys) {
		return c.firstReturns[i]
	}
	return math.MaxInt64
}
