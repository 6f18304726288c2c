package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// civilClock is civil time: ledger time plus an offset, but never less than it was.
type civilClock struct {
	offset quota.Span
	now    quota.CivilTime // 0 until the first SetCivilOffset
}

// advance follows ledger time.
func (c *civilClock) advance(at quota.Instant) {
	if c.now != 0 {
		c.now = max(c.now, quota.CivilTime(at)+quota.CivilTime(c.offset))
	}
}

// continueFrom sets the clock so that it shows a civil time at an instant of ledger time, and goes on from there.
func (c *civilClock) continueFrom(civil quota.CivilTime, at quota.Instant) {
	if civil != 0 {
		c.now, c.offset = civil, quota.Span(civil)-quota.Span(at)
	}
}

// instantOf is the instant of ledger time at which the clock will show a civil time, if the offset stays; now or
// earlier if it shows that already.
func (c *civilClock) instantOf(civil quota.CivilTime, now quota.Instant) quota.Instant {
	if civil <= c.now {
		return now
	}
	return quota.Instant(civil) - quota.Instant(c.offset)
}

// check verifies that the clock shows the time of an instant, or a later one.
func (c *civilClock) check(now quota.Instant) error {
	is := *c
	if is.advance(now); is.now != c.now || c.now < 0 || c.now == 0 && c.offset != 0 {
		return fmt.Errorf("civil time is %d at %d ms of ledger time with an offset of %d", c.now, now, c.offset)
	}
	return nil
}

func (l *Ledger) setCivilOffset(c quota.SetCivilOffset, m mode) Outcome {
	if c.Offset < 1 || c.Offset > quota.MaxCivilTime {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "offset", "civil time is ledger time and 1 to %d ms, not %d",
			int64(quota.MaxCivilTime), c.Offset)}
	}
	repeated := l.civil.now != 0 && c.Offset == l.civil.offset
	if m == carryOut {
		l.civil.offset = c.Offset
		l.civil.now = max(l.civil.now, quota.CivilTime(l.now.At)+quota.CivilTime(c.Offset))
	}
	return Outcome{Repeated: repeated}
}
