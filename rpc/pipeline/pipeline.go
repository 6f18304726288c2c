// Package pipeline serves a call in a list of steps, one after the other, before a handler answers it.
//
// A [Pipeline] is one handler, where a chain of middleware has one for each step: a call has one context for all values
// that the steps attach to it, and one deferred function for all that must happen when it ends.
package pipeline

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// Step does one thing for a call before it is served. It returns false if it has answered the call; then no further
// step and no handler sees it.
type Step func(*Exchange) bool

// Pipeline is a handler of steps and a last handler, which serves what passes all of them.
type Pipeline struct {
	Steps []Step
	Last  http.Handler
	// Recover answers a call in which a step or the last handler panicked. [http.ErrAbortHandler] passes it.
	Recover func(x *Exchange, cause any)
}

// ServeHTTP takes a call through the steps. What [Exchange.AtEnd] has collected happens in any case.
func (p *Pipeline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{Writer: w, context: exchangeContext{Context: r.Context()}}
	x.Request = r.WithContext(&x.context)
	x.ends = x.firstEnds[:0]
	defer func() {
		cause := recover()
		err, _ := cause.(error)
		abort := errors.Is(err, http.ErrAbortHandler) // net/http's own way to cut a connection
		if cause != nil && !abort {
			p.Recover(x, cause)
		}
		x.end()
		if abort {
			panic(cause)
		}
	}()
	for _, step := range p.Steps {
		if !step(x) {
			return
		}
	}
	p.Last.ServeHTTP(x.Writer, x.Request)
}

// Exchange is a call on its way through the steps. It belongs to the goroutine that serves the call.
type Exchange struct {
	// Writer takes the answer. A step may put another one in front of it.
	Writer http.ResponseWriter
	// Request is what the caller asks. Its context is that of the exchange.
	Request *http.Request

	context   exchangeContext
	ends      []func()
	firstEnds [8]func() // enough for most calls, so that their ends need no memory of their own
}

// AtEnd has a function called when the call ends: in the reverse order of the calls of AtEnd, also after a panic.
func (x *Exchange) AtEnd(f func()) { x.ends = append(x.ends, f) }

// end must be called once.
func (x *Exchange) end() {
	for _, f := range slices.Backward(x.ends) {
		f()
	}
}

// Attach makes the context of the exchange return a value for a key. At most as many values as steps need can be
// attached; one more is an error of the program.
func (x *Exchange) Attach(key, value any) {
	c := &x.context
	c.attached[c.count] = attachment{key, value}
	c.count++
}

// LimitTime gives the context of the exchange a deadline.
func (x *Exchange) LimitTime(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(x.Request.Context(), timeout)
	x.SetContext(ctx)
	x.AtEnd(cancel)
}

// SetContext replaces the context of the exchange by one that is derived from it.
func (x *Exchange) SetContext(ctx context.Context) { x.Request = x.Request.WithContext(ctx) }

// maxAttached is more than the steps of any pipeline attach.
const maxAttached = 6

// exchangeContext is one context for all values that steps attach to a call. It must not change once the last handler
// runs.
type exchangeContext struct {
	context.Context //nolint:containedctx // it is a context itself

	attached [maxAttached]attachment
	count    int
}

type attachment struct{ key, value any }

// Value finds what was attached, and what the context of the caller holds.
func (c *exchangeContext) Value(key any) any {
	for i := range c.count {
		if c.attached[i].key == key {
			return c.attached[i].value
		}
	}
	return c.Context.Value(key)
}
