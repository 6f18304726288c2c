package cluster

import (
	"context"

	"github.com/quorate/quorate/internal/access"
)

// callerKey is the key of the caller in a context.
type callerKey struct{}

// WithCaller says who asks for what is proposed with this context. The log entry carries the caller to the ledger,
// which decides what the caller may do. The caller must not be changed afterwards. It must satisfy
// [access.Caller.Check]: otherwise a proposal fails with TooLarge, like all that cannot be written.
func WithCaller(ctx context.Context, by *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, by)
}

// WithSystemCaller is WithCaller for what the cluster itself proposes.
func WithSystemCaller(ctx context.Context) context.Context {
	system := access.SystemCaller()
	return WithCaller(ctx, &system)
}

// callerOf returns the caller of a context; nil for none.
func callerOf(ctx context.Context) *access.Caller {
	by, _ := ctx.Value(callerKey{}).(*access.Caller)
	return by
}

// chargedUser is the user whose share of the queue a proposal takes from; empty if it has none: in an open cluster, and
// for what the cluster itself or a caller that is not known proposes.
func (n *Node) chargedUser(ctx context.Context) string {
	by := callerOf(ctx)
	if by == nil || !by.IsUser() || n.Book().Mode() == access.Open {
		return ""
	}
	return by.User
}

// Book is the access book as of the log entries that this node has applied. It takes no lock. A book never changes, so
// it may be kept, but each call should ask for the present one.
func (n *Node) Book() *access.Book { return n.ledger.Book() }
