package activity

import "time"

// stepNumber counts steps since 1970.
type stepNumber uint32

// stepAt is the step of a time.
func stepAt(at time.Time) stepNumber {
	return stepNumber(max(0, at.Unix()) / int64(StepLength/time.Second))
}

func (n stepNumber) startTime() time.Time {
	return time.Unix(int64(n)*int64(StepLength/time.Second), 0).UTC()
}

// firstShown is the first of the steps that are remembered when the present one is n.
func (n stepNumber) firstShown() stepNumber { return n - min(n, Steps-1) }

// carrier is what a step tells of its end to the next one.
type carrier[T any] interface{ carryOver() T }

// changeLog has the steps in which something has changed, in their order; those between are as the one before them.
type changeLog[T carrier[T]] struct{ entries []entry[T] }

type entry[T any] struct {
	number stepNumber
	value  T
}

// entryAt is the present step, to be changed. What is too old is forgotten, and if the clock was set back, so are steps
// that are yet to come.
func (t *changeLog[T]) entryAt(n stepNumber) *T {
	var last T
	if len(t.entries) > 0 {
		last = t.entries[len(t.entries)-1].value
	}
	for len(t.entries) > 0 && t.entries[len(t.entries)-1].number > n {
		t.entries = t.entries[:len(t.entries)-1]
	}
	if len(t.entries) == 0 || t.entries[len(t.entries)-1].number < n {
		t.forgetOld(n)
		t.entries = append(t.entries, entry[T]{n, last.carryOver()})
	}
	return &t.entries[len(t.entries)-1].value
}

// forgetOld drops what is not shown any more once n is the present step, but for what the first step begins with.
func (t *changeLog[T]) forgetOld(n stepNumber) {
	old := 0
	for old+1 < len(t.entries) && t.entries[old+1].number <= n.firstShown() {
		old++
	}
	if old > 0 {
		t.entries = append(t.entries[:0], t.entries[old:]...)
	}
}

// lastValue is how things stood at last.
func (t *changeLog[T]) lastValue() T {
	var none T
	if len(t.entries) == 0 {
		return none
	}
	return t.entries[len(t.entries)-1].value
}

// valuesBetween are those of all steps between two, both included.
func (t *changeLog[T]) valuesBetween(from, to stepNumber) []T {
	list := make([]T, 0, to-from+1)
	var before T
	i := 0
	for n := from; n <= to; n++ {
		for ; i < len(t.entries) && t.entries[i].number < n; i++ {
			before = t.entries[i].value.carryOver()
		}
		if i < len(t.entries) && t.entries[i].number == n {
			list = append(list, t.entries[i].value)
		} else {
			list = append(list, before)
		}
	}
	return list
}
