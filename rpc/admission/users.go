package admission

import (
	"math"
	"sync"

	"golang.org/x/time/rate"

	"github.com/quorate/quorate/rpc/pipeline"
)

// The share that one user may hold of a limit of the server, as one part in so many. A user also keeps to what every
// caller keeps to: three times what is free.
const (
	// UserCalls is for calls under way, of clients and of those that other members relay.
	UserCalls = 4
	// UserStreams is for streams and waiting requests together, UserWaits for the waiting requests alone.
	UserStreams = 8
	UserWaits   = 10
	// UserExpensive is for expensive reads that are under way or wait. One of a user at most is under way, and users take
	// turns.
	UserExpensive = 8
)

// MaxUsers bounds the users that a server remembers while they have no call. Users with a call are always known; their
// number is bounded by the limits for calls and streams.
const MaxUsers = 16384

// users are the callers that have proved who they are. A user is one caller for all addresses and
// credentials that the calls come with, and for all members that relay them.
type users struct {
	// perSecond bounds the calls that one user may begin in a second; 0 does not.
	perSecond int

	mu    sync.Mutex
	known map[string]*Caller
	// sweepAt is how many known users make it worth to look for those without a call.
	sweepAt int
}

func newUsers(perSecond int) *users {
	return &users{perSecond: perSecond, known: map[string]*Caller{}, sweepAt: MaxUsers}
}

// joinCall must be followed by a leaveCall.
func (u *users) joinCall(name string) *Caller {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.known[name]
	if c == nil {
		if len(u.known) >= u.sweepAt {
			u.forgetIdle()
		}
		c = &Caller{key: "user " + name, isUser: true}
		if u.perSecond > 0 {
			c.rate = rate.NewLimiter(rate.Limit(u.perSecond), u.perSecond)
		}
		u.known[name] = c
	}
	c.calls++
	return c
}

func (u *users) leaveCall(c *Caller) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c.calls--
}

// forgetIdle forgets the users who have no call, with what their rate has counted. It is rare: the number of users has
// to pass MaxUsers.
func (u *users) forgetIdle() {
	for name, c := range u.known {
		if c.calls == 0 && c.isIdle() {
			delete(u.known, name)
		}
	}
	u.sweepAt = max(MaxUsers, 2*len(u.known))
}

// UserCount is how many users are remembered.
func (g *Limiters) UserCount() int {
	g.users.mu.Lock()
	defer g.users.mu.Unlock()
	return len(g.users.known)
}

// AttributeUser is the step that charges the call of a user to the user instead of the address, or the member, that it
// comes from. It must come behind the one that authenticates the call, and before those that admit it. Of what other
// members relay it counts no rate: the member that the user asked has done that.
func (a *Controller) AttributeUser(x *pipeline.Exchange) bool {
	if a.hooks.UserOf == nil {
		return true
	}
	name := a.hooks.UserOf(x.Request.Context())
	if name == "" {
		return true
	}
	t, all := TicketOf(x.Request.Context()), a.Limiters.users
	c := all.joinCall(name)
	x.AtEnd(func() { all.leaveCall(c) })
	t.Caller = c
	if t.Limiters == &a.Limiters.Members {
		return true
	}
	if err := a.Limiters.CheckRate(c); err != nil {
		a.RefuseCall(x.Writer, x.Request, err)
		return false
	}
	return true
}

// CheckRate counts a call that begins, and refuses it if its user begins more than the server takes. It is for calls
// that come with others in one stream too.
func (g *Limiters) CheckRate(c *Caller) error {
	if c == nil || c.rate == nil || c.rate.Allow() {
		return nil
	}
	g.beyondRate.Inc()
	return overloadedError(
		"%s has begun more than the %d calls in a second that this server takes of one user "+
			"(calls-per-second-per-user); nothing was done, try again later, or ask the operators for a higher rate",
		c.key, g.users.perSecond)
}

// userShare is how much one user may hold; at least one.
func (g *Limiter) userShare() int64 {
	if g.userPart == 0 {
		return math.MaxInt64
	}
	return max(1, g.capacity/g.userPart)
}

func (g *Limiter) errBeyondUserShare(c *Caller, held int64) error {
	return overloadedError(
		"%s has %d of the %d %s that this server takes (%s), and the share of one user is %d; nothing was done, try again "+
			"when some of them have ended, or ask the operators to raise the limit",
		c.key, held, g.capacity, g.what, g.setting, g.userShare())
}

// withUserPart sets the share of one user to one part in so many.
func (g *Limiter) withUserPart(part int64) *Limiter {
	g.userPart = part
	return g
}
