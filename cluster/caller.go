package cluster

import (
	"context"

	"github.com/quorate/quorate/internal/access"
)

type callerKey struct{}

// WithCaller says who asks for what is proposed with this context. The log entry carries the caller to the ledger,
// which decides what the caller may do. The caller must not be changed afterwards. It must satisfy
// [access.Caller.Check]: otherwise a proposal fails with TooLarge, like all that cannot be written.
func WithCaller(ctx context.Context, caller *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// WithSystemCaller is WithCaller for what the cluster itself proposes.
func WithSystemCaller(ctx context.Context) context.Context {
	system := access.SystemCaller()
	return WithCaller(ctx, &system)
}

func callerOf(ctx context.Context) *access.Caller {
	caller, _ := ctx.Value(callerKey{}).(*access.Caller)
	return caller
}

// chargedUser is the user whose share of the queue a proposal takes from; empty if it has none: in an open cluster, and
// for what the cluster itself or a caller that is not known proposes.
func chargedUser(ctx context.Context, book *access.Book) string {
	caller := callerOf(ctx)
	if caller == nil || !caller.IsUser() || book.Mode() == access.Open {
		return ""
	}
	return caller.User
}

// Book is the access book as of the log entries that this node has applied. It takes no lock. A book never changes, so
// it may be kept, but each call should ask for the present one.
func (n *Node) Book() *access.Book { return n.ledger.Book() }
