package identify

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/pipeline"
)

const (
	// checkInterval is how often open streams are looked at: how long a stream may go on after its credential has ceased
	// to hold.
	checkInterval = time.Second
	// recheckPatience bounds how long the credential of one stream may take to be verified again.
	recheckPatience = 100 * time.Millisecond
)

// openStreams are the streams and the waiting calls of callers with a credential. One goroutine looks at them as long
// as there are any. Their number is bounded by the places for streams.
type openStreams struct {
	mu      sync.Mutex
	all     map[*openStream]struct{}
	running bool
}

// openStream is a stream whose credential may end before it.
type openStream struct {
	call   *call
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	control *http.ResponseController // nil once the call has ended: the writer must not be touched any more
}

// EndWithCredential is the step that ends a stream when its credential does, or within a second after the credential
// was revoked or refused or its account disabled, if the cluster is guarded. Calls with one answer are too short for
// that, but for those that wait: see [Identifier.FollowCredential]. The step must come behind those that authenticate
// and admit the call.
func (i *Identifier) EndWithCredential(x *pipeline.Exchange) bool {
	c := callOf(x.Request.Context())
	if c == nil || c.caller.Kind == access.Anonymous || i.options.Table.IsUnary(x.Request.URL.Path) {
		return true
	}
	ctx, cancel := context.WithCancelCause(x.Request.Context())
	s := &openStream{call: c, cancel: cancel, control: http.NewResponseController(x.Writer)}
	x.AtEnd(func() {
		i.streams.remove(s)
		s.close()
		cancel(nil)
	})
	x.SetContext(ctx)
	i.addStream(s)
	return true
}

// FollowCredential returns a context for a call with one answer that waits. It ends when the call does, or as that of a
// stream with EndWithCredential; [EndOfCredential] tells why then. The function must be called when the wait is over.
func (i *Identifier) FollowCredential(ctx context.Context) (context.Context, func()) {
	c := callOf(ctx)
	if c == nil || c.caller.Kind == access.Anonymous || c.caller.Kind == access.System {
		return ctx, func() {}
	}
	followed, cancel := context.WithCancelCause(ctx)
	s := &openStream{call: c, cancel: cancel}
	i.addStream(s)
	return followed, func() {
		i.streams.remove(s)
		cancel(nil)
	}
}

// EndOfCredential is the error that ended a context because the credential of the call no longer holds; nil if it has
// not ended, or for another reason.
func EndOfCredential(ctx context.Context) error {
	var ended *connect.Error
	if errors.As(context.Cause(ctx), &ended) && ended.Code() == connect.CodeUnauthenticated {
		return ended
	}
	return nil
}

func (i *Identifier) addStream(s *openStream) {
	i.streams.mu.Lock()
	defer i.streams.mu.Unlock()
	if i.streams.all == nil {
		i.streams.all = map[*openStream]struct{}{}
	}
	i.streams.all[s] = struct{}{}
	if !i.streams.running {
		i.streams.running = true
		i.checks.Go(i.checkStreams)
	}
}

func (o *openStreams) remove(s *openStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, s)
}

// list returns the open streams. If there are none, the goroutine that called it must end.
func (o *openStreams) list() []*openStream {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]*openStream, 0, len(o.all))
	for s := range o.all {
		list = append(list, s)
	}
	o.running = len(list) > 0
	return list
}

// checkStreams runs until there are no streams or Close is called.
func (i *Identifier) checkStreams() {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-i.closed:
			return
		}
		list := i.streams.list()
		if len(list) == 0 {
			return
		}
		known := i.current()
		if known.book.Mode() != access.Guarded {
			continue
		}
		for _, s := range list {
			if err := i.recheck(known, s.call); err != nil {
				i.failures.count(err)
				s.end(toError(err))
			}
		}
	}
}

// recheck returns why a credential that held does not hold any more, or nil.
func (i *Identifier) recheck(known *believed, c *call) error {
	if !c.ends.IsZero() && !i.options.Now().Before(c.ends) {
		return authn.NewError(authn.CredentialEnded, "the credential of this call has ended; use another one")
	}
	if known != c.under {
		if err := i.recheckBook(known, c); err != nil {
			return err
		}
	}
	if c.caller.Kind == access.External && (len(c.chain) > 0 || known.trust != c.under.trust) {
		return i.recheckCredential(c)
	}
	return nil
}

// recheckBook is for a book that has changed since the credential was checked.
func (i *Identifier) recheckBook(known *believed, c *call) error {
	if _, err := known.book.Identify(&c.caller, i.wallNow()); err != nil {
		return authn.NewError(authn.Withdrawn, err.Error())
	}
	if known.refuses {
		return i.refusal(known.book, c)
	}
	return nil
}

// recheckCredential verifies a certificate again, or a token of an issuer whose rules may have changed.
func (i *Identifier) recheckCredential(c *call) error {
	ctx, cancel := context.WithTimeout(context.Background(), recheckPatience)
	defer cancel()
	identity, err := i.authenticator.Authenticate(ctx,
		authn.Credentials{Authorization: c.authorization, Chain: c.chain})
	switch reason, _ := authn.ReasonOf(err); {
	case reason == authn.KeysUnavailable:
		return nil // its issuer has just changed; it is asked again
	case err != nil:
		return err
	case identity.User != c.caller.User:
		return authn.NewError(authn.Withdrawn, "the credential of this call is now that of another user; call again")
	}
	return nil
}

func (s *openStream) end(cause *connect.Error) {
	s.cancel(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		// A handler that waits for the caller's next message does not look at its context. A recorded connection has no
		// deadlines.
		_ = s.control.SetReadDeadline(time.Now())
	}
}

func (s *openStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control = nil
}

// TellEnd gives a stream that ended with its credential the error that says so, instead of that of a cancelled call.
// It is for an interceptor.
func TellEnd(ctx context.Context, err error) error {
	if ended := EndOfCredential(ctx); ended != nil {
		return ended
	}
	return err
}
