package rpc

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/rpc/wirelimit"
)

// Controller decides which calls a server takes on, and bounds what each of them may take while it is under way. Its
// methods are middleware; a call must have a [Ticket] before it passes any other.
type Controller struct {
	limits     Limits
	limiters   *limiters
	pacing     pacing
	procedures procedures
	elements   *wirelimit.Checker
	expensive  *expensiveReads
	// decoding lets large requests be decoded one at a time.
	decoding *fairQueue
	hooks    ControllerHooks
}

// ControllerHooks are what a Controller needs of the server around it.
type ControllerHooks struct {
	// WriteError answers an error in the caller's protocol.
	WriteError func(http.ResponseWriter, *http.Request, error)
	// RelayedByMember reports whether another member relays the call.
	RelayedByMember func(*http.Request) bool
}

func newController(l Limits, known procedures, registerer prometheus.Registerer, hooks ControllerHooks) (*Controller, error) {
	limits := l.WithDefaults()
	all, err := newLimiters(limits, registerer)
	if err != nil {
		return nil, err
	}
	elements, err := newElementChecker()
	if err != nil {
		return nil, err
	}
	expensive, err := newExpensiveReads(all.expensive, registerer)
	if err != nil {
		return nil, err
	}
	return &Controller{
		limits: limits, limiters: all, pacing: defaultPacing, procedures: known, elements: elements, expensive: expensive,
		decoding: newFairQueue(0), hooks: hooks,
	}, nil
}

// Ticket is what admission notes about one call.
type Ticket struct {
	// caller is who holds what the call takes; nil if the server does not tell callers apart. limiters are where it takes it.
	caller   *caller
	limiters *callLimiters
	slot     slot
	// servedFor is the ticket of the call that a front end serves by making this one; nil for calls of callers.
	servedFor *Ticket
	// decodedSize is how much memory the request takes when it is decoded, in bytes, by estimate.
	decodedSize int64
	// received is when the request had arrived completely, prepared how long it took to decode and check it.
	received time.Time
	prepared time.Duration
	// turn is that of an expensive read, decoding that of a large request.
	turn, decoding heldTurn
}

type ticketKey struct{}

// ticketOf finds the ticket of a call; never nil.
func ticketOf(ctx context.Context) *Ticket {
	if t, ok := ctx.Value(ticketKey{}).(*Ticket); ok {
		return t
	}
	return &Ticket{}
}

// issueTicket gives a call its ticket. The turns that it holds end when it begins to be answered.
func (a *Controller) issueTicket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &Ticket{limiters: &a.limiters.clients}
		if a.hooks.RelayedByMember(r) {
			t.limiters = &a.limiters.members
		}
		if c := connectionOf(r.Context()); c != nil {
			t.caller = c.caller
		}
		if answer, ok := w.(interface{ OnAnswer(fn func()) }); ok {
			answer.OnAnswer(t.turn.endTurn)
		}
		defer t.decoding.endTurn()
		defer t.turn.endTurn()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ticketKey{}, t)))
	})
}

// shareTicket gives a call that a front end makes a ticket of its own. It is of the same caller, and has the slot of the call
// that the front end serves.
func (a *Controller) shareTicket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := ticketOf(r.Context())
		own := &Ticket{caller: of.caller, limiters: of.limiters, servedFor: of}
		defer own.turn.endTurn()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ticketKey{}, own)))
	})
}

// isRelayed reports whether another member relays the call.
func (a *Controller) isRelayed(ctx context.Context) bool {
	return ticketOf(ctx).limiters == &a.limiters.members
}

// markPrepared notes how long it took to decode and check the request, when it is called for the first time.
func (t *Ticket) markPrepared() {
	if !t.received.IsZero() {
		t.prepared = time.Since(t.received)
		t.received = time.Time{}
		t.decoding.endTurn()
	}
}

// releaseSlot is for a call that begins to wait elsewhere. One of a front end has the slot of the call that it is for.
func (t *Ticket) releaseSlot() {
	if t.servedFor != nil {
		t = t.servedFor
	}
	t.slot.releaseSlot()
}
