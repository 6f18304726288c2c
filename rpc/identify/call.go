package identify

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/pipeline"
)

// ViaHeader names the front end that a relayed call came through. Only nodes may set it.
const ViaHeader = "Quorate-Via"

// call does not change once the step has passed.
type call struct {
	caller access.Caller
	// ends is when the credential ends; the zero time means never.
	ends time.Time
	// authorization are the values of the header as they came, chain the certificates that identify the caller.
	authorization []string
	chain         []*x509.Certificate
	// issued is when the credential was made, in milliseconds since 1970, 0 if that is not known; jwtID its "jti".
	issued int64
	jwtID  string
	// under is what the credential was checked with.
	under *believed
	// unproved is true if a credential did not hold, and the cluster was not known to be guarded.
	unproved bool
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// CallerOf returns the caller of a call. It is not nil for a call that came from outside the process, or that a front
// end makes for one, and must not be changed. It is nil for what the server does by itself, such as counting for
// metrics.
func CallerOf(ctx context.Context) *access.Caller {
	if c := callOf(ctx); c != nil {
		return &c.caller
	}
	return nil
}

// AttributeOwnCalls is the step for calls that this process makes to itself. A call that serves no other call is of the
// server itself, such as counting for metrics, and may do everything. Front ends authenticate the calls that they serve
// before they make any.
func AttributeOwnCalls(x *pipeline.Exchange) bool {
	if callOf(x.Request.Context()) == nil {
		x.Attach(callKey{}, &call{caller: access.SystemCaller()})
	}
	return true
}

// CredentialEnds returns when the credential of a call ends, and false if it does not or there is none.
func CredentialEnds(ctx context.Context) (time.Time, bool) {
	c := callOf(ctx)
	if c == nil || c.ends.IsZero() {
		return time.Time{}, false
	}
	return c.ends, true
}

// PassOn sets the headers of a request that one node sends to another one for a call, so that the other node can
// authenticate the caller again. A node that asks on behalf of a caller must call it: the other node would take the
// request for an anonymous one. The certificate and the front end are sent only to the listener for nodes, because all
// others refuse those headers.
func PassOn(ctx context.Context, header http.Header, toNodeListener bool) {
	c := callOf(ctx)
	if c == nil {
		return
	}
	if len(c.authorization) > 0 {
		header["Authorization"] = c.authorization
	}
	if !toNodeListener {
		return
	}
	authn.SetClientCert(header, c.chain)
	if c.caller.Via != "" {
		header.Set(ViaHeader, c.caller.Via)
	}
}
