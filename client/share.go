package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// ErrShareClosed is the error of Acquire on a share that is closed.
var ErrShareClosed = errors.New("the share is closed")

// ShareConfig says what a share holds.
type ShareConfig struct {
	// Tree, Node and Resource are where the share is held, as in a Claim.
	Tree, Node, Resource string
	// User is whose limits the share counts for, with Groups as those of the user. Both may be empty: then no limit of
	// users or groups applies in an open cluster, and those of the caller do in a guarded one.
	User   string
	Groups []string
	// Step is the size of each lease of the share, in base units, and so the largest grant.
	Step int64
	// Min and Max bound what is held at one time; Max is at most 1,000 steps. Min is requested at once and kept.
	Min, Max int64
	// TTL is that of the leases, at least a second. A process that stops keeps its share for so long.
	TTL time.Duration
	// Margin is how long before the end of a lease its grants end, as in WithMargin: choose the time that a holder needs
	// to stop. 0 is a tenth of the TTL, and at most three seconds.
	Margin time.Duration
	// IdleTime is how long a step must be unneeded before it is returned; 0 is the TTL.
	IdleTime time.Duration
}

// principal is nil if the share names no one.
func (c ShareConfig) principal() *quoratev1.Principal {
	if c.User == "" && len(c.Groups) == 0 {
		return nil
	}
	return &quoratev1.Principal{User: c.User, Groups: c.Groups}
}

func (c ShareConfig) withDefaults() (ShareConfig, error) {
	const mostSteps = 1000
	switch {
	case c.Step < 1 || c.Min < 0 || c.Max < c.Step || c.Max < c.Min:
		return c, fmt.Errorf("client: a share needs 1 <= step <= max and 0 <= min <= max, not step %d, min %d, max %d",
			c.Step, c.Min, c.Max)
	case c.Max/c.Step > mostSteps:
		return c, fmt.Errorf("client: a share has at most %d steps, not %d of %d", mostSteps, c.Max/c.Step, c.Step)
	case c.TTL < time.Second:
		return c, fmt.Errorf("client: the TTL of a share is at least a second, not %v", c.TTL)
	}
	if c.IdleTime <= 0 {
		c.IdleTime = c.TTL
	}
	return c, nil
}

// Share grants units of one resource within this process, in less than a microsecond and without a call. The units are
// held at the servers as leases of one step each. A share adds a step before the last is used up, and returns steps
// that stay unneeded. It is safe for concurrent use.
//
// The units in use in all processes together never exceed the limits at the servers, under this contract:
//
//   - A grant counts until it is released, and each belongs to one lease. A step is returned when all its grants are
//     released.
//   - A process that cannot renew a lease stops granting from it, by its own monotonic clock, a margin before the
//     servers may end it. At that moment the grants of the lease end: Done is closed, and Valid is false. Their holders
//     must have stopped by Until, which is a margin later.
//   - A holder that may have been paused (by a signal, a debugger, or a virtual machine that stopped) checks Valid when
//     it continues, before its next effect. If it can be paused between the check and the effect, only the resource
//     itself can refuse it: pass Fence along.
//
// A machine that is suspended stops its monotonic clock, which only Linux tells; see Lease.
type Share struct {
	client *Client
	config ShareConfig

	mu      sync.Mutex
	steps   []*shareStep
	held    int64 // of steps that grant
	used    int64 // of all grants that are not released
	waiting []*shareWaiter
	closed  bool
	// wanted is true after a grant failed for want of units, blocked while no step is requested because the last attempt
	// failed.
	wanted, blocked bool
	stats           ShareStats
	changed         chan struct{} // has a token after something changed that the manager reacts to

	ended   context.CancelFunc // ends the manager
	manager sync.WaitGroup
}

// shareStep is one lease of a share.
type shareStep struct {
	lease *Lease
	used  int64
	idle  time.Time // since when it is unused; zero while it is used
	// over is true if nothing more is granted from it: it is lost, revoked or about to be returned.
	over bool
}

type shareWaiter struct {
	units int64
	grant chan *Grant // receives the grant; closed if the share is closed
}

// Grant is a number of units that are granted within this process. See Share for what its holder owes.
type Grant struct {
	share *Share
	step  *shareStep
	units int64
}

// ShareStats are numbers of a share.
type ShareStats struct {
	// Held is what the leases hold from which units are granted, Used what is granted and not released. After a lease
	// was lost, Used counts its grants until they are released.
	Held, Used int64
	// Waiting is the number of calls of Acquire that wait.
	Waiting int
	// Grown, Returned and Lost count leases; Denied counts steps that the servers denied.
	Grown, Returned, Lost, Denied int
	// Err is why the last attempt to add a step failed; nil if it did not.
	Err error
}

// NewShare returns a share, which begins to request its minimum in the background. It must be closed.
func NewShare(c *Client, config ShareConfig) (*Share, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Share{client: c, config: config, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.ended = cancel
	s.notify()
	s.manager.Go(func() { s.manage(ctx) })
	return s, nil
}

// TryAcquire grants units if this process holds them now and no earlier caller waits; nil otherwise.
func (s *Share) TryAcquire(units int64) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || units < 1 || len(s.waiting) > 0 {
		return nil
	}
	return s.grant(units)
}

// Acquire waits for units, in the order of arrival, until ctx ends. A request for more than a step is an error.
func (s *Share) Acquire(ctx context.Context, units int64) (*Grant, error) {
	if units < 1 || units > s.config.Step {
		return nil, fmt.Errorf("client: a share grants between 1 and %d units at a time, not %d", s.config.Step, units)
	}
	if g := s.TryAcquire(units); g != nil {
		return g, nil
	}
	w := &shareWaiter{units: units, grant: make(chan *Grant, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrShareClosed
	}
	s.waiting = append(s.waiting, w)
	s.serveWaiting() // a grant may have been released since
	s.mu.Unlock()
	select {
	case g, open := <-w.grant:
		if !open {
			return nil, ErrShareClosed
		}
		return g, nil
	case <-ctx.Done():
		s.leaveQueue(w)
		return nil, context.Cause(ctx)
	}
}

// Stats returns the numbers of now.
func (s *Share) Stats() ShareStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Held, stats.Used, stats.Waiting = s.held, s.used, len(s.waiting)
	return stats
}

// Release returns the units to the share. Only the first call has an effect.
func (g *Grant) Release() {
	g.share.mu.Lock()
	defer g.share.mu.Unlock()
	g.share.takeBack(g)
}

// Units returns how many units were granted; 0 after Release.
func (g *Grant) Units() int64 {
	g.share.mu.Lock()
	defer g.share.mu.Unlock()
	return g.units
}

// Valid reports whether the grant still counts at the servers: it is neither released nor over.
func (g *Grant) Valid() bool {
	return g.Units() > 0 && g.step.lease.Remaining() > 0
}

// Done is closed when the grant ends although it was not released, because its lease was lost.
func (g *Grant) Done() <-chan struct{} { return g.step.lease.Context().Done() }

// Until is when its holder must have stopped, unless the lease is renewed until then, which moves it.
func (g *Grant) Until() time.Time { return g.step.lease.Ends() }

// Fence is the token of the lease that the grant belongs to. Tokens only grow, so a resource that sees them can refuse
// the holder of an older one.
func (g *Grant) Fence() uint64 { return g.step.lease.Fence() }

// grant takes units from the first step that has them, so that later steps become idle; nil if none has. Mu is held.
// A step grants only while its lease is certain: the check is here and not in a timer, which a paused process would
// run too late.
func (s *Share) grant(units int64) *Grant {
	for _, step := range s.steps {
		if step.over || s.config.Step-step.used < units || step.lease.Remaining() <= 0 {
			continue
		}
		step.used += units
		step.idle = time.Time{}
		s.used += units
		if s.held-s.used < s.config.Step/2 {
			s.notifyGrowth()
		}
		return &Grant{share: s, step: step, units: units}
	}
	s.wanted = true
	s.notifyGrowth()
	return nil
}

// notifyGrowth makes the manager add a step, if it may; mu is held.
func (s *Share) notifyGrowth() {
	if !s.blocked && s.total()+s.config.Step <= s.config.Max {
		s.notify()
	}
}

// takeBack needs mu to be held.
func (s *Share) takeBack(g *Grant) {
	g.step.used -= g.units
	s.used -= g.units
	g.units = 0
	if g.step.used == 0 {
		g.step.idle = time.Now()
		if g.step.over {
			s.notify()
		}
	}
	s.serveWaiting()
}

// serveWaiting grants to those that wait, in their order; mu is held.
func (s *Share) serveWaiting() {
	for len(s.waiting) > 0 {
		g := s.grant(s.waiting[0].units)
		if g == nil {
			return
		}
		s.waiting[0].grant <- g
		s.waiting = s.waiting[1:]
	}
}

// leaveQueue also releases a grant that was made at that moment.
func (s *Share) leaveQueue(w *shareWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			s.serveWaiting()
			return
		}
	}
	if g := <-w.grant; g != nil {
		s.takeBack(g)
	}
}

func (s *Share) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
