package state

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// CivilClock is civil time: ledger time plus an offset, but never less than it was.
type CivilClock struct {
	Offset quota.Span
	Now    quota.CivilTime // 0 until the first SetCivilOffset
}

// Advance follows ledger time.
func (c *CivilClock) Advance(at quota.Instant) {
	if c.Now != 0 {
		c.Now = max(c.Now, quota.CivilTime(at)+quota.CivilTime(c.Offset))
	}
}

// ContinueFrom sets the clock so that it shows a civil time at an instant of ledger time, and goes on from there.
func (c *CivilClock) ContinueFrom(civil quota.CivilTime, at quota.Instant) {
	if civil != 0 {
		c.Now, c.Offset = civil, quota.Span(civil)-quota.Span(at)
	}
}

// InstantOf is the instant of ledger time at which the clock will show a civil time, if the offset stays; now or
// earlier if it shows that already.
func (c *CivilClock) InstantOf(civil quota.CivilTime, now quota.Instant) quota.Instant {
	if civil <= c.Now {
		return now
	}
	return quota.Instant(civil) - quota.Instant(c.Offset)
}

// Check verifies that the clock shows the time of an instant, or a later one.
func (c *CivilClock) Check(now quota.Instant) error {
	checked := *c
	if checked.Advance(now); checked.Now != c.Now || c.Now < 0 || c.Now == 0 && c.Offset != 0 {
		return fmt.Errorf("civil time is %d at %d ms of ledger time with an offset of %d", c.Now, now, c.Offset)
	}
	return nil
}

func (s *State) SetCivilOffset(c quota.SetCivilOffset, m Mode) Outcome {
	if c.Offset < 1 || c.Offset > quota.MaxCivilTime {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "offset", "civil time is ledger time and 1 to %d ms, not %d",
			int64(quota.MaxCivilTime), c.Offset)}
	}
	repeated := s.Civil.Now != 0 && c.Offset == s.Civil.Offset
	if m == CarryOut {
		s.Civil.Offset = c.Offset
		s.Civil.Now = max(s.Civil.Now, quota.CivilTime(s.Now.At)+quota.CivilTime(c.Offset))
	}
	return Outcome{Repeated: repeated}
}
