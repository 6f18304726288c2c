// Package admission decides which calls a server takes on, and bounds what each may take while it is under way: a
// slot among the calls, bytes of its body, memory of the decoded request, time.
//
// [Controller] is the entry: its methods are steps of a pipeline. It gives each call a [Ticket], which accounts what
// the call takes to its caller. A [Limiter] counts one kind of thing and divides it among callers (limiter.go says
// how). Callers are distinguished by user if they are authenticated (users.go) and by address if they are not, members
// by id (caller.go). Reads that cost as much as many writes wait
// for their turn in a fair queue (expensive.go, fairqueue.go). All limits are in limits.go, beside the step that admits
// a call.
package admission

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// Controller decides which calls a server takes on, and bounds what each of them may take while it is under way. Its
// methods are steps of a pipeline; a call must have a [Ticket] before it passes any other.
type Controller struct {
	Limits     Limits
	Limiters   *Limiters
	Pacing     Pacing
	procedures procedures.Table
	elements   *wirelimit.Checker
	Expensive  *ExpensiveReads
	// Decoding lets large requests be decoded one at a time.
	Decoding *FairQueue
	hooks    ControllerHooks
}

// ControllerHooks are what a Controller needs of the server around it.
type ControllerHooks struct {
	// WriteError writes an error in the caller's protocol.
	WriteError func(http.ResponseWriter, *http.Request, error)
	// RelayedByMember reports whether another member relays the call.
	RelayedByMember func(*http.Request) bool
	// UserOf returns the user to whom an authenticated call is charged; empty if its address is. Nil is for a server
	// without users.
	UserOf func(context.Context) string
}

// NewController makes the controller of a server, and registers its metrics.
func NewController(
	l Limits, known procedures.Table, registerer prometheus.Registerer, hooks ControllerHooks,
) (*Controller, error) {
	limits := l.WithDefaults()
	all, err := NewLimiters(limits, registerer)
	if err != nil {
		return nil, err
	}
	elements, err := codec.NewElementChecker()
	if err != nil {
		return nil, err
	}
	expensive, err := newExpensiveReads(all.Expensive, registerer)
	if err != nil {
		return nil, err
	}
	return &Controller{
		Limits: limits, Limiters: all, Pacing: defaultPacing, procedures: known, elements: elements,
		Expensive: expensive,
		Decoding:  newFairQueue(0), hooks: hooks,
	}, nil
}

// Ticket is what admission notes about one call.
type Ticket struct {
	// Caller is who holds what the call takes; nil if the server does not tell callers apart. limiters are where it
	// takes it.
	Caller   *Caller
	Limiters *CallLimiters
	slot     slot
	// body is what the body takes.
	body bodyCharge
	// servedFor is the ticket of the call that a front end serves by making this one; nil for calls of callers.
	servedFor *Ticket
	// decodedSize is how much memory the request takes when it is decoded, in bytes, by estimate; charged is what was
	// charged for it.
	decodedSize, charged int64
	// received is when the request had arrived completely, prepared how long it took to decode and check it.
	received time.Time
	Prepared time.Duration
	// Turn is that of an expensive read, decoding that of a large request.
	Turn, decoding heldTurn
}

// TicketKey is the key of the ticket in a context.
type TicketKey struct{}

// TicketOf finds the ticket of a call; never nil.
func TicketOf(ctx context.Context) *Ticket {
	if t, ok := ctx.Value(TicketKey{}).(*Ticket); ok {
		return t
	}
	return &Ticket{}
}

// IssueTicket gives a call its ticket. What it takes is given back when the call ends; the turns that it holds end when
// it begins to be answered.
func (a *Controller) IssueTicket(x *pipeline.Exchange) bool {
	t := &Ticket{Limiters: &a.Limiters.Clients}
	if a.hooks.RelayedByMember(x.Request) {
		t.Limiters = &a.Limiters.Members
	}
	if c := connectionOf(x.Request.Context()); c != nil {
		t.Caller = c.caller
	}
	if answer, ok := x.Writer.(interface{ OnAnswer(fn func()) }); ok {
		answer.OnAnswer(t.Turn.EndTurn)
	}
	x.AtEnd(t.giveBack)
	x.Attach(TicketKey{}, t)
	return true
}

func (t *Ticket) giveBack() {
	t.Turn.EndTurn()
	t.decoding.EndTurn()
	if t.charged != 0 {
		t.Limiters.Decoded.Release(t.Caller, t.charged)
	}
	t.body.refundBytes()
	t.slot.releaseSlot()
}

// ShareTicket gives a call that a front end makes a ticket of its own. It is of the same caller, and has the slot of
// the call that the front end serves.
func (a *Controller) ShareTicket(x *pipeline.Exchange) bool {
	served := TicketOf(x.Request.Context())
	own := &Ticket{Caller: served.Caller, Limiters: served.Limiters, servedFor: served}
	x.AtEnd(own.Turn.EndTurn)
	x.Attach(TicketKey{}, own)
	return true
}

// IsRelayed reports whether another member relays the call.
func (a *Controller) IsRelayed(ctx context.Context) bool {
	return TicketOf(ctx).Limiters == &a.Limiters.Members
}

// MarkPrepared notes how long it took to decode and check the request, when it is called for the first time.
func (t *Ticket) MarkPrepared() {
	if !t.received.IsZero() {
		t.Prepared = time.Since(t.received)
		t.received = time.Time{}
		t.decoding.EndTurn()
	}
}

// releaseSlot is for a call that begins to wait elsewhere. The slot of a front end's call belongs to the call that it
// serves.
func (t *Ticket) releaseSlot() {
	if t.servedFor != nil {
		t = t.servedFor
	}
	t.slot.releaseSlot()
}
