package ledger

import "container/heap"

// turns are crowds in the order of their first seats: whoever has sat longest has the next turn.
type turns []turn

type turn struct {
	crowd *crowd
	seat  uint64
	who   sitter
}

// turnsOf puts crowds in their order.
func turnsOf(crowds []*crowd) turns {
	t := make(turns, 0, len(crowds))
	for _, c := range crowds {
		seat, who, _ := c.sitters.first()
		t = append(t, turn{c, seat, who})
	}
	heap.Init(&t)
	return t
}

// next goes on after whoever had the first turn has left its crowd.
func (t *turns) next() {
	first := &(*t)[0]
	var more bool
	if first.seat, first.who, more = first.crowd.sitters.first(); more {
		heap.Fix(t, 0)
	} else {
		heap.Pop(t)
	}
}

// Len, Less, Swap, Push and Pop are what a heap needs; nothing is ever pushed.
func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].seat < t[j].seat }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(any)          {}
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
