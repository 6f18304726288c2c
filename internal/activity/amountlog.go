package activity

import (
	"encoding/binary"

	"github.com/quorate/quorate/quota"
)

// amountLog has the amounts of one resource of a node at the end of each step in which they changed. All but the latest
// are kept as differences, a few bytes each, because there may be 8 resources of 5,000 nodes in 288 steps.
type amountLog struct {
	resource string
	unit     quota.Unit
	// first is what the node has before the packed entries, sealed the last of these.
	first, sealed levelEntry
	packed        []byte
	// latest comes after the packed entries; it is changed until its step is over.
	latest levelEntry
}

type levelEntry struct {
	number stepNumber
	level  levelOf
}

// levelOf is the zero value if there is no such node or resource.
type levelOf struct {
	exists        bool
	used, waiting quota.Amount
	limit         quota.Limit
}

// numbers are the parts of the level that differ by an amount from those of another.
func (l *levelOf) numbers() [3]*quota.Amount {
	return [3]*quota.Amount{&l.used, &l.waiting, &l.limit.Amount}
}

// amountLogBytes is the size of a log without packed entries, with the pointer to it.
const amountLogBytes = 240

func (t *amountLog) size() int { return amountLogBytes + cap(t.packed) }

func (t *amountLog) isOf(h quota.HeldAmount) bool {
	return t.resource == h.Resource && t.unit == h.Unit
}

// set records the level of the current step n. Like a changeLog, it drops entries that are too old, and, if the clock
// was set back, entries after n.
func (t *amountLog) set(n stepNumber, level levelOf) {
	if n < t.latest.number {
		t.dropFrom(n)
	}
	if level != t.latest.level {
		if n > t.latest.number {
			t.seal()
			t.latest.number = n
		}
		t.latest.level = level
	}
	t.forgetOld(n)
}

func (t *amountLog) seal() {
	t.packed = appendEntry(t.packed, t.sealed, t.latest)
	t.sealed = t.latest
}

// dropFrom drops the entries of step n and later, and keeps what the last of them has as the latest of step n.
func (t *amountLog) dropFrom(n stepNumber) {
	level, kept := t.latest.level, 0
	t.sealed = t.first
	t.walk(func(e levelEntry, end int) bool {
		if e.number >= n {
			return false
		}
		t.sealed, kept = e, end
		return true
	})
	t.packed, t.latest = t.packed[:kept], levelEntry{n, level}
}

// forgetOld drops the packed entries up to the first step that is shown when n is the current one, and keeps what the
// last of them has as the first.
func (t *amountLog) forgetOld(n stepNumber) {
	old := 0
	t.walk(func(e levelEntry, end int) bool {
		if e.number > n.firstShown() {
			return false
		}
		t.first, old = e, end
		return true
	})
	if old > 0 {
		t.packed = append(t.packed[:0], t.packed[old:]...)
	}
}

func (t *amountLog) isEmptySince(n stepNumber) bool {
	return !t.latest.level.exists && t.latest.number <= n
}

// addTo expects a list that begins with the step from.
func (t *amountLog) addTo(list []Step, from stepNumber) {
	add := func(level levelOf, from, to int) {
		for i := max(0, from); i < min(to, len(list)) && level.exists; i++ {
			list[i].Amounts = append(list[i].Amounts, Amount{
				Resource: t.resource, Unit: t.unit, Used: level.used, Waiting: level.waiting, Limit: level.limit,
			})
		}
	}
	last := t.first
	t.walk(func(e levelEntry, _ int) bool {
		add(last.level, int(last.number)-int(from), int(e.number)-int(from))
		last = e
		return true
	})
	latest := int(t.latest.number) - int(from)
	add(last.level, int(last.number)-int(from), latest)
	add(t.latest.level, latest, len(list))
}

// walk yields the oldest first, and where each entry ends.
func (t *amountLog) walk(yield func(e levelEntry, end int) bool) {
	e := t.first
	for at := 0; at < len(t.packed); {
		e, at = nextEntry(t.packed, at, e)
		if !yield(e, at) {
			return
		}
	}
}

// The first byte of an entry says whether the resource exists, which numbers differ from those of the entry before, and
// of which kind the limit is.
const (
	entryExists    = 1 << 0
	entryChanges   = 1 // shift of three bits
	entryLimitKind = 4 // shift of two bits
)

// appendEntry packs the difference of an entry to the one before it: a byte, the steps between them, and the numbers
// that differ.
func appendEntry(packed []byte, before, e levelEntry) []byte {
	head := byte(e.level.limit.Kind) << entryLimitKind
	if e.level.exists {
		head |= entryExists
	}
	packed = append(packed, head)
	start := len(packed) - 1
	packed = binary.AppendUvarint(packed, uint64(e.number-before.number))
	previous := before.level.numbers()
	for i, number := range e.level.numbers() {
		if *number != *previous[i] {
			packed[start] |= 1 << (entryChanges + i)
			packed = binary.AppendVarint(packed, int64(*number-*previous[i]))
		}
	}
	return packed
}

// nextEntry reads the entry at a position of what appendEntry has packed, which comes after another, and where it ends.
func nextEntry(packed []byte, at int, before levelEntry) (levelEntry, int) {
	head, e := packed[at], before
	at++
	steps, length := binary.Uvarint(packed[at:])
	at, e.number = at+length, before.number+stepNumber(steps)
	e.level.exists, e.level.limit.Kind = head&entryExists != 0, quota.LimitKind(head>>entryLimitKind)
	for i, number := range e.level.numbers() {
		if head&(1<<(entryChanges+i)) != 0 {
			difference, length := binary.Varint(packed[at:])
			*number, at = *number+quota.Amount(difference), at+length
		}
	}
	return e, at
}
