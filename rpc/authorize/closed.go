package authorize

import (
	"context"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// closedFor refuses a call because this server serves no open cluster, or knows that its cluster is guarded and has not
// caught up with it. What the server asks itself is not refused.
func (a *Authorizer) closedFor(ctx context.Context, book *access.Book) error {
	switch mode := book.Mode(); {
	case mode == access.Guarded || a.Caller(ctx).Kind == access.System:
		return nil
	case a.config.WasGuarded:
		return errBehind()
	case a.config.Closed && mode == access.Open:
		return errClosed()
	}
	return nil
}

// checkClosed refuses calls to a server that serves no open cluster. The status is for everyone, and shows only a part
// then.
func (a *Authorizer) checkClosed(ctx context.Context, path string, scope procedures.Scope) error {
	if scope == procedures.ScopePublic || scope == procedures.ScopeNode ||
		path == adminv1connect.ClusterServiceGetStatusProcedure {
		return nil
	}
	return a.closedFor(ctx, a.config.Books.Book())
}

// errBehind sends a caller to another server: this one has started and not heard from a leader since.
func errBehind() error {
	return wire.NodeError(&cluster.Error{
		Reason: cluster.NoLeader, NotApplied: true,
		Text: "the cluster is guarded, and this server, which has started, has not caught up with it yet: it does not know " +
			"who may call; repeat the call, or ask another server",
	})
}

// errClosed says what opens the server, to a caller who may be its operator.
func errClosed() error {
	return wire.NewProblem(connect.CodeFailedPrecondition,
		"the cluster is open, and this server, which other machines reach, does not serve an open cluster: make the first "+
			"administrator with \"quorate token create\", which guards the cluster, or set insecure-open on all servers",
		&quoratev1.Problem{Reason: access.Conflict.String(), NotApplied: true})
}
