package identify

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"connectrpc.com/grpchealth"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

// Authenticate is the step that gives a call of the API its caller. It must come before the body is read and before the
// call takes a place, because a bad credential must not cost more than the headers that it came in.
//
// Health checks are answered whatever credential they carry: what watches a server must not find it down because a
// token has ended. Calls between nodes have no user.
func (i *Identifier) Authenticate(x *pipeline.Exchange) bool {
	via := ""
	if node := i.options.NodeCall(x.Request.Context()); node.Internal {
		via = checkedVia(x.Request.Header.Get(ViaHeader))
	}
	kind := i.options.Table[x.Request.URL.Path].Kind
	isTool := kind == procedures.ServesTools && !strings.HasPrefix(x.Request.URL.Path, healthPrefix)
	if kind == procedures.ServesClients || isTool {
		return i.authenticate(x, via, i.options.WriteError)
	}
	x.Attach(callKey{}, newCall(x.Request.Context(), via))
	return true
}

const healthPrefix = "/" + grpchealth.HealthV1ServiceName + "/"

// AuthenticateFrontEnd returns the step for calls of a front end. The name is that of the front end in callers and
// records; write answers a refusal in its protocol.
func (i *Identifier) AuthenticateFrontEnd(
	name string, write func(http.ResponseWriter, *http.Request, error),
) pipeline.Step {
	return func(x *pipeline.Exchange) bool { return i.authenticate(x, name, write) }
}

// checkedVia returns the name of a front end, or nothing if it is not a name that the log accepts.
func checkedVia(name string) string {
	if (&access.Caller{Kind: access.Anonymous, Via: name}).Check() != nil {
		return ""
	}
	return name
}

func newCall(ctx context.Context, via string) *call {
	return &call{caller: access.Caller{Kind: access.Anonymous, Via: via, Request: observe.CallOf(ctx).RequestID}}
}

func (i *Identifier) authenticate(
	x *pipeline.Exchange, via string, write func(http.ResponseWriter, *http.Request, error),
) bool {
	ctx := x.Request.Context()
	c := newCall(ctx, via)
	x.Attach(callKey{}, c)
	shown, err := i.shownCredentials(x.Request)
	if err == nil && len(shown.Authorization) == 0 && len(shown.Chain) == 0 {
		return i.admitWithout(x, c, write)
	}
	c.authorization = shown.Authorization
	if err == nil {
		err = i.identify(ctx, shown, c)
	}
	mode := i.current().book.Mode()
	c.unproved = err != nil
	if err == nil || mode == access.Open {
		return true
	}
	i.failures.count(err)
	if mode == access.Watching {
		return true
	}
	write(x.Writer, x.Request, toError(err))
	return false
}

// admitWithout admits a call without a credential: as the user of its front end if that is open, and otherwise as
// anonymous.
func (i *Identifier) admitWithout(
	x *pipeline.Exchange, c *call, write func(http.ResponseWriter, *http.Request, error),
) bool {
	if !slices.Contains(i.options.OpenFrontEnds, c.caller.Via) {
		return true
	}
	c.caller.Kind, c.caller.User = access.External, access.FrontEndIssuer+"/"+c.caller.Via
	if c.under = i.current(); !c.under.refuses || c.under.book.Mode() != access.Guarded {
		return true
	}
	if err := i.refusal(c.under.book, c); err != nil {
		write(x.Writer, x.Request, toError(err))
		return false
	}
	return true
}

// shownCredentials returns what a request shows of its caller.
//
// A certificate comes from the handshake of the connection, or, on the listener for nodes, from headers in which a node
// that has proved to be one says that it saw the handshake. In a cluster without certificates those headers cannot be
// true, so they are refused before (package rpc).
func (i *Identifier) shownCredentials(r *http.Request) (authn.Credentials, error) {
	shown := authn.Credentials{Authorization: r.Header["Authorization"]}
	if node := i.options.NodeCall(r.Context()); node.Internal {
		if node.ID == "" {
			return shown, nil
		}
		var err error
		shown.Chain, err = authn.ParseClientCert(r.Header)
		return shown, err
	}
	if i.options.Chain != nil && !i.options.IsRelayed(r) {
		shown.Chain = i.options.Chain(r.TLS)
		if len(shown.Authorization) > 0 && i.options.CertificateRequired {
			shown.Chain = nil
		}
	}
	if len(shown.Authorization) > 0 || len(shown.Chain) > 0 {
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			shown.Address = from.Addr()
		}
	}
	return shown, nil
}

// identify completes a call by the identity that its credential proves. It changes nothing if there is an error.
func (i *Identifier) identify(ctx context.Context, shown authn.Credentials, c *call) error {
	i.current() // believes what the book says now
	identity, err := i.authenticator.Authenticate(ctx, shown)
	if err != nil {
		return err
	}
	under := i.current()
	found := call{
		caller: access.Caller{
			Kind: access.External, User: identity.User, Groups: identity.Groups, Credential: identity.CredentialID,
			Via: c.caller.Via, Request: c.caller.Request,
		},
		ends: identity.Ends, authorization: shown.Authorization, chain: shown.Chain, jwtID: identity.JWTID, under: under,
	}
	switch {
	case identity.Kind == authn.AccountKind:
		found.caller.Kind = access.AccountCaller
	case len(shown.Chain) > 0:
		found.issued = shown.Chain[0].NotBefore.UnixMilli()
	default:
		found.issued = identity.Issued.UnixMilli()
	}
	if err := checkCaller(&found.caller); err != nil {
		return err
	}
	if under.refuses {
		if err := i.refusal(under.book, &found); err != nil {
			return err
		}
	}
	*c = found
	return nil
}

// checkCaller checks that a caller is one that the log accepts. Groups of an issuer come in the order of the section,
// which is sorted.
func checkCaller(c *access.Caller) error {
	if c.Kind == access.AccountCaller {
		return nil // account and groups were checked when they were made
	}
	if err := c.Check(); err != nil {
		return authn.NewError(authn.JWTUser, "the user or a group of the credential: "+err.Error())
	}
	return nil
}

func (i *Identifier) wallNow() int64 { return i.options.Now().UnixMilli() }
