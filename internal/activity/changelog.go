package activity

import "time"

// stepNumber counts since 1970.
type stepNumber uint32

func stepAt(at time.Time) stepNumber {
	return stepNumber(max(0, at.Unix()) / int64(StepLength/time.Second))
}

func (n stepNumber) startTime() time.Time {
	return time.Unix(int64(n)*int64(StepLength/time.Second), 0).UTC()
}

// firstShown is the first step that is kept when the current one is n.
func (n stepNumber) firstShown() stepNumber { return n - min(n, Steps-1) }

// carrier is a value of which a part carries over to the next step.
type carrier[T any] interface{ carryOver() T }

// changeLog has an entry for each step with a change, in order. A step without an entry has what carries over from the
// entry before it.
type changeLog[T carrier[T]] struct{ entries []entry[T] }

type entry[T any] struct {
	number stepNumber
	value  T
}

// entryAt returns the value of the current step n for the caller to change. It drops entries that are too old, and,
// if the clock was set back, entries after n.
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

// forgetOld drops the entries before the first step that is shown when n is the current one, but for the one that
// carries over to it.
func (t *changeLog[T]) forgetOld(n stepNumber) {
	old := 0
	for old+1 < len(t.entries) && t.entries[old+1].number <= n.firstShown() {
		old++
	}
	if old > 0 {
		t.entries = append(t.entries[:0], t.entries[old:]...)
	}
}

func (t *changeLog[T]) lastValue() T {
	var none T
	if len(t.entries) == 0 {
		return none
	}
	return t.entries[len(t.entries)-1].value
}

// valuesBetween includes both steps.
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
