// Package authorize decides who may call which method.
//
// An [Authorizer] goes by the rule that the schema states for each method (package procedures). It decides rules of the
// scopes CLUSTER and AUTHENTICATED before a handler sees the call. The ledger decides those of LEDGER while it applies
// the command, and handlers those of ANSWER, because only they know which nodes a call concerns.
package authorize

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// CallerOf returns the caller of an authenticated call. A call without one is anonymous.
type CallerOf func(context.Context) *access.Caller

// Books has the access book of the node. The book may be old: it is the one that the node has applied.
type Books interface {
	Book() *access.Book
}

// Config is what an Authorizer needs. All fields but CallerOf and CredentialEnds are required.
type Config struct {
	// Rules has the rule of each method.
	Rules procedures.Table
	Books Books
	// CallerOf is nil if no call is authenticated; then every caller is anonymous.
	CallerOf CallerOf
	// CredentialEnds returns when the credential of a call ends, and false if it does not; nil if that is not known.
	CredentialEnds func(context.Context) (time.Time, bool)
	// Closed is true if this server serves no open cluster. While the cluster is open, callers may do here what the rules
	// of the scope PUBLIC let everyone do, and ask for the status.
	Closed bool
	// WasGuarded is true if the cluster was guarded when this server last knew. Until it knows again, it refuses calls
	// like a closed server.
	WasGuarded bool
	// Now is the wall clock.
	Now func() time.Time
	// LogWouldRefuse logs what a guarded cluster would have refused to a user: a verb, or what stands for it, at a place,
	// which is empty for the cluster. It must bound what it writes. Nil logs nothing.
	LogWouldRefuse func(ctx context.Context, user, verb, place string)
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	// WriteError answers a call with an error.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
}

// Authorizer decides who may call which method. It may be used concurrently.
type Authorizer struct {
	config      Config
	wouldRefuse wouldRefuse
}

// New makes an Authorizer and registers its metrics.
func New(c Config) (*Authorizer, error) {
	a := &Authorizer{config: c, wouldRefuse: newWouldRefuse()}
	if err := a.wouldRefuse.register(c.Registerer); err != nil {
		return nil, fmt.Errorf("registering the metrics of access: %w", err)
	}
	return a, nil
}

// AuthorizeCall is the step of a pipeline that refuses calls against the rule of their method: with permission_denied,
// or with unauthenticated if the caller has no identity. Steps before it must have authenticated the caller. Unknown
// methods pass, because there is nothing that they could do.
func (a *Authorizer) AuthorizeCall(x *pipeline.Exchange) bool {
	known, found := a.config.Rules[x.Request.URL.Path]
	if !found {
		return true
	}
	err := a.checkClosed(x.Request.Context(), x.Request.URL.Path, known.Rule.Scope)
	if err == nil {
		err = a.checkRule(x.Request.Context(), known.Rule)
	}
	if err != nil {
		a.config.WriteError(x.Writer, x.Request, err)
		return false
	}
	return true
}

// AuthorizeScrape is the step before metrics are shown.
func (a *Authorizer) AuthorizeScrape(x *pipeline.Exchange) bool {
	err := a.checkRule(x.Request.Context(),
		procedures.Rule{Scope: procedures.ScopeCluster, Verb: access.MetricsRead})
	if err != nil {
		a.config.WriteError(x.Writer, x.Request, err)
	}
	return err == nil
}

// checkRule returns nil if the call may begin. In the mode watching it counts and logs what it
// would refuse.
func (a *Authorizer) checkRule(ctx context.Context, rule procedures.Rule) error {
	label := noVerb
	if rule.Verb != 0 {
		label = rule.Verb.String()
	}
	book := a.config.Books.Book()
	if rule.Scope == procedures.ScopeCluster {
		if err := a.closedFor(ctx, book); err != nil {
			return err
		}
	}
	if book.Mode() == access.Open {
		return nil
	}
	err := a.askRule(ctx, book, rule)
	if err == nil || book.Mode() == access.Guarded {
		return err
	}
	a.wouldRefuse.count(label)
	a.logWouldRefuse(ctx, label, "")
	return nil
}

// askRule decides a rule as if the cluster were guarded.
func (a *Authorizer) askRule(ctx context.Context, book *access.Book, rule procedures.Rule) error {
	switch rule.Scope {
	case procedures.ScopePublic, procedures.ScopeLedger,
		procedures.ScopeAnswer, procedures.ScopeNode:
		return nil
	case procedures.ScopeAuthenticated:
		return a.askIdentity(ctx, book)
	case procedures.ScopeCluster:
		return a.askCluster(ctx, book, rule.Verb)
	}
	return connect.NewError(connect.CodePermissionDenied, errors.New("the method has no rule that says who may call it"))
}

func (a *Authorizer) askIdentity(ctx context.Context, book *access.Book) error {
	caller := a.Caller(ctx)
	if _, err := book.Identify(caller, a.wallTime()); err != nil {
		return wire.AccessError(err)
	}
	if caller.Kind == access.Anonymous {
		return wire.UnauthenticatedError("this call needs a credential")
	}
	return nil
}

func (a *Authorizer) askCluster(ctx context.Context, book *access.Book, verb access.Verb) error {
	caller, wall := a.Caller(ctx), a.wallTime()
	id, err := book.Identify(caller, wall)
	switch {
	case err != nil:
		return wire.AccessError(err)
	case access.Allows(id, verb, wall, access.Path{book.Cluster()}):
		return nil
	case caller.Kind == access.Anonymous:
		return wire.UnauthenticatedError(fmt.Sprintf("this call needs %s on the cluster, and a credential to show it", verb))
	}
	return wire.RefusalError(LacksVerb(caller, verb, "the cluster"))
}

// LacksVerb is the refusal of a caller without a verb at a place.
func LacksVerb(caller *access.Caller, verb access.Verb, place string) *quota.Error {
	return &quota.Error{
		Kind: quota.Forbidden, Text: fmt.Sprintf("%s does not have %s on %s", caller.User, verb, place), Verb: verb,
	}
}

// Caller returns the caller of a call; it is never nil.
func (a *Authorizer) Caller(ctx context.Context) *access.Caller {
	if a.config.CallerOf != nil {
		if caller := a.config.CallerOf(ctx); caller != nil {
			return caller
		}
	}
	return &access.Caller{Kind: access.Anonymous}
}

// CredentialEnds returns when the credential of a call ends; the zero time if it does not, or if that is not known.
func (a *Authorizer) CredentialEnds(ctx context.Context) time.Time {
	if a.config.CredentialEnds != nil {
		if ends, known := a.config.CredentialEnds(ctx); known {
			return ends
		}
	}
	return time.Time{}
}

// ShowsCluster reports whether the caller of a call sees what needs a verb on the cluster. Before the cluster is
// guarded every caller does; in the mode watching, what would not be shown is counted.
func (a *Authorizer) ShowsCluster(ctx context.Context, verb access.Verb) bool {
	return a.RequireCluster(ctx, verb) == nil
}

// RequireCluster refuses a call whose caller does not have a verb on the cluster, by the book of this node. Before the
// cluster is guarded it refuses none; in the mode watching it counts what it would refuse.
func (a *Authorizer) RequireCluster(ctx context.Context, verb access.Verb) error {
	return a.checkRule(ctx, procedures.Rule{Scope: procedures.ScopeCluster, Verb: verb})
}

// RequireClusterIn is RequireCluster by the book of a state that was read, so that a linearizable read is as fresh in
// rights as in data. It counts nothing.
func (a *Authorizer) RequireClusterIn(ctx context.Context, book *access.Book, verb access.Verb) error {
	if book.Mode() != access.Guarded {
		return nil
	}
	return a.askCluster(ctx, book, verb)
}

func (a *Authorizer) wallTime() int64 { return a.config.Now().UnixMilli() }

// Now is the wall clock by which rights are decided.
func (a *Authorizer) Now() time.Time { return a.config.Now() }
