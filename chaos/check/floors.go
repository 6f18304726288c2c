package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// floors say how far the log had come for certain at an instant: some answer from before it was of that index.
type floors struct {
	at    []int64
	index []uint64
}

func floorsOf(ops []history.Op) floors {
	var answered []*history.Op
	for i := range ops {
		if ops[i].Index > 0 {
			answered = append(answered, &ops[i])
		}
	}
	slices.SortFunc(answered, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	var f floors
	highest := uint64(0)
	for _, o := range answered {
		if o.Index > highest {
			highest = o.Index
			f.at, f.index = append(f.at, o.Return), append(f.index, highest)
		}
	}
	return f
}

// before is the highest index that was answered before an instant; 0 if none was.
func (f floors) before(t int64) uint64 {
	i, _ := slices.BinarySearch(f.at, t)
	if i == 0 {
		return 0
	}
	return f.index[i-1]
}

// place names a limit.
type place struct{ tree, node, resource string }

// setting is one value that a limit got, or may have got.
type setting struct {
	// from and by bound the index of the change.
	from, by uint64
	amount   int64
	// certain is false if nobody was told whether the change was made.
	certain bool
}

// settings are the values of each limit in the order in which they were asked for. The limits of one tree have one writer.
type settings map[place][]setting

// change is one change of configuration with all attempts to make it.
type change struct {
	setting

	client       int
	limits       []history.Limit
	called, back int64
}

// changesOf are the changes that were made, or may have been, in the order in which they were asked for.
func changesOf(ops []history.Op, f floors) []change {
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
	var all []change
	for _, id := range ids {
		if c, made := changeOf(attempts[id], f); made {
			all = append(all, c)
		}
	}
	return all
}

// changeOf joins the attempts to make one change; made is false if it was refused for certain.
func changeOf(attempts []*history.Op, f floors) (c change, made bool) {
	c = change{setting: setting{by: math.MaxUint64}, client: attempts[0].Client, limits: attempts[0].Limits, called: never, back: never}
	refused := 0
	for _, o := range attempts {
		c.called = min(c.called, o.Call)
		switch o.Outcome {
		case history.OK:
			c.certain, c.by, c.back = true, min(c.by, o.Index), min(c.back, o.Return)
			if !o.Repeated {
				c.from = o.Index
			}
		case history.Refused:
			refused++
		case history.Failed, history.Unknown:
		}
	}
	c.from = max(c.from, f.before(c.called))
	return c, refused < len(attempts)
}

func settingsOf(changes []change) settings {
	all := settings{}
	for _, c := range changes {
		for _, l := range c.limits {
			at := place{l.Tree, l.Node, l.Resource}
			c.amount = l.Amount
			all[at] = append(all[at], c.setting)
		}
	}
	return all
}

// most is the highest value that a limit may have had at any index from one to another; known is false if nobody set it.
func (all settings) most(at place, from, to uint64) (most int64, known bool) {
	list := all[at]
	for i, s := range list {
		if s.from > to {
			continue
		}
		replaced := slices.ContainsFunc(list[i+1:], func(later setting) bool { return later.certain && later.by < from })
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

// fixed tells whether a limit was set once only.
func (all settings) fixed(at place) bool { return len(all[at]) == 1 && all[at][0].certain }
