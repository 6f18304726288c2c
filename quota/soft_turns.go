package quota

import "container/heap"

// turns are rows in the order of their first seats: whoever has sat longest has the next turn.
type turns []turn

type turn struct {
	row  *row
	seat uint64
	who  sitter
}

// turnsOf puts rows in their order.
func turnsOf(rows []*row) turns {
	t := make(turns, 0, len(rows))
	for _, r := range rows {
		seat, who, _ := r.sitters.first()
		t = append(t, turn{r, seat, who})
	}
	heap.Init(&t)
	return t
}

// next goes on after whoever had the first turn has left its row.
func (t *turns) next() {
	first := &(*t)[0]
	var more bool
	if first.seat, first.who, more = first.row.sitters.first(); more {
		heap.Fix(t, 0)
	} else {
		heap.Pop(t)
	}
}

// skip goes on without the row that had the first turn.
func (t *turns) skip() { heap.Pop(t) }

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
