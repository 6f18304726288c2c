package check

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// The sequential model of one item: a lock whose holder may lose it by itself if it is a lease.

// turn is one operation on an item: its grant, or an end that somebody saw.
type turn struct {
	who      string
	fence    uint64
	takes    bool
	leased   bool
	from, by uint64
}

// String is a turn for people who look at pictures.
func (t *turn) String() string {
	what := "ends"
	if t.takes {
		what = "takes it"
	}
	return fmt.Sprintf("%s (fence %d) %s @%d-%d", t.who, t.fence, what, t.from, t.by)
}

// lock is the state of an item.
type lock struct {
	index, fence uint64
	held, leased bool
}

func itemModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lock{} },
		Step: func(state, input, _ any) (bool, any) {
			from, _ := state.(lock)
			t, _ := input.(*turn)
			return from.turn(t)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
}

func (l lock) turn(t *turn) (bool, any) {
	if l.index > t.by {
		return false, l
	}
	next := lock{index: max(l.index, t.from), fence: max(l.fence, t.fence), held: t.takes, leased: t.leased}
	if t.takes {
		return t.fence > l.fence && (!l.held || l.leased), next
	}
	return l.held && l.fence == t.fence, next
}

// itemsOrdered judges every item.
func (s *story) itemsOrdered(v *Verdict, o Options) {
	turns := map[string][]porcupine.Operation{}
	for _, l := range s.byFence {
		for _, claim := range l.claims() {
			for _, item := range claim.Items {
				name := claim.Tree + ":" + item
				turns[name] = append(turns[name], l.turns()...)
			}
		}
	}
	for name, steps := range turns {
		v.saw("item turns", len(steps))
		m := itemModel()
		result, info := porcupine.CheckOperationsVerbose(m, steps, o.Timeout)
		if result == porcupine.Illegal {
			picture(v, o, name, m, info)
		}
		conclude(v, result, name, steps, info)
	}
}

// turns are the grant of an allocation, and its end if somebody saw when.
func (l *life) turns() []porcupine.Operation {
	client := l.ask().Client
	take := &turn{who: l.id, fence: l.fence, takes: true, leased: l.leased(), from: l.from, by: l.by}
	all := []porcupine.Operation{{ClientId: client, Input: take, Call: l.asked, Return: l.granted}}
	if l.end > 0 {
		end := &turn{who: l.id, fence: l.fence, from: l.end, by: l.end}
		all = append(all, porcupine.Operation{ClientId: client, Input: end, Call: l.asked, Return: min(l.gone, math.MaxInt64)})
	}
	return all
}
