package authorize

import (
	"context"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/access"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/rpc/wire"
)

// isClosed reports whether a call is refused because this server serves no open cluster. What the server asks itself is
// not.
func (a *Authorizer) isClosed(ctx context.Context, book *access.Book) bool {
	return a.config.Closed && book.Mode() == access.Open && a.Caller(ctx).Kind != access.System
}

// checkClosed refuses calls to a server that serves no open cluster. The status is for everyone, and shows only a part
// then.
func (a *Authorizer) checkClosed(ctx context.Context, path string, scope quoratev1.RuleScope) error {
	if scope == quoratev1.RuleScope_RULE_SCOPE_PUBLIC || scope == quoratev1.RuleScope_RULE_SCOPE_NODE ||
		path == quoratev1connect.ClusterServiceGetStatusProcedure || !a.isClosed(ctx, a.config.Books.Book()) {
		return nil
	}
	return errClosed()
}

// errClosed says what opens the server, to a caller who may be its operator.
func errClosed() error {
	return wire.NewProblem(connect.CodeFailedPrecondition,
		"the cluster is open, and this server, which other machines reach, does not serve an open cluster: make the first "+
			"administrator with \"quorate access bootstrap\", which guards the cluster, or set insecure-open on all servers",
		&quoratev1.Problem{Reason: access.Conflict.String(), NotApplied: true})
}
