package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/quota"
)

const (
	// civilTolerance is how far civil time may be from the voters' clocks before the leader corrects it. It is more than
	// the error of a clock that is read in probeTimeout, so that the error alone corrects nothing.
	civilTolerance quota.Span = 1000
	// civilJump is how far civil time moves forward only if a majority of the voters have clocks within that distance.
	civilJump quota.Span = 5 * 60 * 1000
	// clockFar is the distance from civil time from which the clock of a member is reported.
	clockFar = 5 * time.Second
	// disagreedRounds is after how many rounds of probes it is reported that the voters do not agree: members that start
	// together answer one after the other.
	disagreedRounds = 10
)

// clockReading is a wall clock in milliseconds since 1970, and when it was read by the monotonic clock of this machine;
// zero if the clock was not read.
type clockReading struct {
	wall int64
	at   time.Time
}

// offsetFrom is what is added to ledger time to get the time that the clock shows, wherever the clock of this machine
// stands. It does not depend on the age of the reading.
func (r clockReading) offsetFrom(c *ledgerClock) quota.Span {
	ledgerTime, now := c.read()
	return quota.Span(r.wall + now.Sub(r.at).Milliseconds() - int64(ledgerTime))
}

type civilRound struct {
	present quota.Span            // the offset of the ledger, 0 for none
	clocks  map[string]quota.Span // the offset of each member that answered
	voters  int                   // all of them
	voting  []quota.Span          // the offsets of the voters that answered
}

// civilClock keeps civil time near the clocks of the voters during one leadership.
type civilClock struct {
	log     hclog.Logger
	ctx     context.Context //nolint:containedctx // that of the leadership
	clock   *ledgerClock
	times   *timeSource
	health  *prober
	commit  *groupCommit
	reports clockReports
}

func (c *civilClock) readClocks() civilRound {
	r := civilRound{present: c.times.civilOffset(), clocks: map[string]quota.Span{}}
	for _, h := range c.health.list() {
		if h.Role == RoleVoter {
			r.voters++
		}
		if h.clock.at.IsZero() || h.Role != RoleVoter && h.Role != RoleNonVoter {
			continue
		}
		offset := h.clock.offsetFrom(c.clock)
		r.clocks[h.ID] = offset
		if h.Role == RoleVoter {
			r.voting = append(r.voting, offset)
		}
	}
	return r
}

// offsets is how far the clocks are ahead of civil time; nil if there is none.
func (r civilRound) offsets() map[string]time.Duration {
	if r.present == 0 {
		return nil
	}
	ahead := map[string]time.Duration{}
	for id, offset := range r.clocks {
		ahead[id] = spanDuration(offset - r.present)
	}
	return ahead
}

// correct proposes another offset of civil time if the present one is not that of the voters' clocks, and logs
// the members whose clock is far from it. It works on the results of the last probes.
func (c *civilClock) correct() {
	r := c.readClocks()
	wanted, agreed := agreeOnOffset(r.voters, r.voting, r.present)
	c.reports.disagreement(c.log, !agreed)
	if agreed && wanted != r.present {
		c.propose(r.present, wanted)
	}
	c.reports.farClocks(c.log, r)
}

func (c *civilClock) propose(from, to quota.Span) {
	_, _, err := c.commit.propose(WithSystemCaller(c.ctx), []quota.Command{quota.SetCivilOffset{Offset: to}}, false)
	switch {
	case err == nil:
		c.log.Info("corrected civil time", "moved", spanDuration(to-from), "first", from == 0)
	case c.ctx.Err() == nil:
		c.log.Warn("cannot correct civil time, trying again", "error", err)
	}
}

// agreeOnOffset returns the offset of civil time that follows from the offsets of the voters that answered: the median
// if all of them did and their number is odd. In general it is the one nearest to the present offset that a majority of
// all voters does not contradict: no majority is later, and none is earlier. So wrong clocks of a minority move it no
// further than the clock of a voter outside of the minority. agreed is false if a change is due and the voters do not
// report enough for it; the result is present then.
func agreeOnOffset(voters int, offsets []quota.Span, present quota.Span) (wanted quota.Span, agreed bool) {
	sorted, majority := slices.Sorted(slices.Values(offsets)), voters/2+1
	if len(sorted) < majority {
		return present, false
	}
	atLeast, atMost := sorted[len(sorted)-majority], sorted[majority-1]
	wanted = min(max(present, atLeast), atMost)
	moved := wanted - present
	switch {
	case present != 0 && moved <= civilTolerance && moved >= -civilTolerance:
		return present, true
	case wanted < 1 || wanted > quota.MaxCivilTime,
		(present == 0 || moved > civilJump) && countNear(sorted, wanted) < majority:
		return present, false
	}
	return wanted, true
}

func countNear(offsets []quota.Span, wanted quota.Span) (count int) {
	for _, o := range offsets {
		if o-wanted <= civilJump && wanted-o <= civilJump {
			count++
		}
	}
	return count
}

// clockReports lets each change of the clocks be logged once.
type clockReports struct {
	disagreed int // rounds in succession
	far       map[string]bool
}

func (c *clockReports) disagreement(log hclog.Logger, found bool) {
	if !found {
		c.disagreed = 0
		return
	}
	if c.disagreed++; c.disagreed == disagreedRounds {
		log.Warn("civil time is not corrected: the clocks of a majority of the voters must be known and agree; " +
			"look at quorate member list")
	}
}

func (c *clockReports) farClocks(log hclog.Logger, r civilRound) {
	far := map[string]bool{}
	for id, ahead := range r.offsets() {
		problem := describeClock(id, ahead)
		if problem == "" {
			continue
		}
		if far[id] = true; !c.far[id] {
			log.Warn("the clock of a member is far from civil time", "member", id, "reason", problem)
		}
	}
	for id := range c.far {
		if _, read := r.clocks[id]; read && !far[id] {
			log.Info("the clock of a member is near civil time again", "member", id)
		}
	}
	c.far = far
}

// describeClock is empty if the clock is near civil time.
func describeClock(id string, ahead time.Duration) string {
	switch {
	case ahead >= clockFar:
		return fmt.Sprintf("the clock of %s is %v ahead of civil time; correct it", id, ahead.Round(time.Second))
	case ahead <= -clockFar:
		return fmt.Sprintf("the clock of %s is %v behind civil time; correct it", id, -ahead.Round(time.Second))
	}
	return ""
}

func spanDuration(s quota.Span) time.Duration { return time.Duration(s) * time.Millisecond }
