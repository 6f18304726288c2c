package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// indexFloors tell which log index had certainly been reached at a given time: a call had been answered with it.
type indexFloors struct {
	at    []int64
	index []uint64
}

func newIndexFloors(ops []history.Op) indexFloors {
	var answered []*history.Op
	for i := range ops {
		if ops[i].Index > 0 {
			answered = append(answered, &ops[i])
		}
	}
	slices.SortFunc(answered, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	var f indexFloors
	highest := uint64(0)
	for _, o := range answered {
		if o.Index > highest {
			highest = o.Index
			f.at, f.index = append(f.at, o.Return), append(f.index, highest)
		}
	}
	return f
}

// highestBefore returns 0 if nothing had been answered.
func (f indexFloors) highestBefore(t int64) uint64 {
	i, _ := slices.BinarySearch(f.at, t)
	if i == 0 {
		return 0
	}
	return f.index[i-1]
}

type limitKey struct{ tree, node, resource string }

// limitValue may be one that was only perhaps set.
type limitValue struct {
	// minIndex and maxIndex bound the index of the change.
	minIndex, maxIndex uint64
	amount             int64
	// certain is false if no answer says whether the change was made.
	certain bool
}

// limitHistory holds the values of each limit in the order of the requests. Each tree has only one writer of limits.
type limitHistory map[limitKey][]limitValue

// limitChange is one change of the configuration with all attempts to make it.
type limitChange struct {
	limitValue

	client       int
	limits       []history.Limit
	called, back int64
}

// changesOf includes changes that may have been made; they are in the order of the requests.
func changesOf(ops []history.Op, f indexFloors) []limitChange {
	attempts := map[string][]*history.Op{}
	var ids []string
	for i := range ops {
		o := &ops[i]
		if o.Kind != history.Configure || o.Outcome == history.Failed {
			continue
		}
		if attempts[o.ID] == nil {
			ids = append(ids, o.ID)
		}
		attempts[o.ID] = append(attempts[o.ID], o)
	}
	var all []limitChange
	for _, id := range ids {
		if c, made := changeOf(attempts[id], f); made {
			all = append(all, c)
		}
	}
	return all
}

// changeOf joins the attempts to make one change. made is false if the change was certainly refused.
func changeOf(attempts []*history.Op, f indexFloors) (c limitChange, made bool) {
	c = limitChange{
		limitValue: limitValue{maxIndex: math.MaxUint64}, client: attempts[0].Client,
		limits: attempts[0].Limits, called: never, back: never,
	}
	refused := 0
	for _, o := range attempts {
		c.called = min(c.called, o.Call)
		switch o.Outcome {
		case history.OK:
			c.certain, c.maxIndex, c.back = true, min(c.maxIndex, o.Index), min(c.back, o.Return)
			if !o.Repeated {
				c.minIndex = o.Index
			}
		case history.Refused:
			refused++
		case history.Failed, history.Unknown:
		}
	}
	c.minIndex = max(c.minIndex, f.highestBefore(c.called))
	return c, refused < len(attempts)
}

func newLimitHistory(changes []limitChange) limitHistory {
	all := limitHistory{}
	for _, c := range changes {
		for _, l := range c.limits {
			at := limitKey{l.Tree, l.Node, l.Resource}
			c.amount = l.Amount
			if all[at] == nil && l.Resource == history.OnHold { // no node is on hold at first
				all[at] = []limitValue{{amount: history.Unlimited, certain: true}}
			}
			all[at] = append(all[at], c.limitValue)
		}
	}
	return all
}

// highestBetween returns the highest value that a limit may have had at any index between two. known is false if the
// limit was never set.
func (all limitHistory) highestBetween(at limitKey, from, to uint64) (most int64, known bool) {
	list := all[at]
	for i, s := range list {
		if s.minIndex > to {
			continue
		}
		replaced := slices.ContainsFunc(list[i+1:], func(later limitValue) bool {
			return later.certain && later.maxIndex < from
		})
		if replaced {
			continue
		}
		if s.amount == history.Unlimited {
			return history.Unlimited, true
		}
		most, known = max(most, s.amount), true
	}
	return most, known
}

func (all limitHistory) isFixed(at limitKey) bool { return len(all[at]) == 1 && all[at][0].certain }
