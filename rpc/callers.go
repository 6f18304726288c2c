package rpc

import (
	"context"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/relay"
)

// newIdentifier gives the identifier the node's access book, and a way to catch up with the leader when a token is not
// in the book yet.
func (s *Server) newIdentifier(c Config) (*identify.Identifier, error) {
	return identify.New(identify.Options{
		Cluster: c.ClusterName, Log: c.Logger, Registerer: c.Registerer, Table: s.procedures, Book: c.Node.Book,
		CatchUp: func(ctx context.Context) error {
			_, err := c.Node.Read(ctx, cluster.ReadOptions{}, func(ledger.Reader) {})
			return err
		},
		NodeCall: func(ctx context.Context) identify.NodeCall {
			from := relay.NodeCallOf(ctx)
			return identify.NodeCall{ID: from.ID, Internal: from.Internal}
		},
		IsRelayed: s.relayedByMember, WriteError: s.admission.RefuseCall,
		Chain: c.Security.ClientChain, ClientRoots: c.Security.ClientRoots, CertificateRequired: c.Security.ClientRequired,
		OpenFrontEnds: c.OpenFrontEnds,
	})
}

// chargedUser is the user whose share a call takes from; empty if it is that of its address, because the caller is not
// known, the cluster is open, or the caller is the system.
func (s *Server) chargedUser(ctx context.Context) string {
	caller := identify.CallerOf(ctx)
	if caller == nil || !caller.IsUser() || s.node.Book().Mode() == access.Open {
		return ""
	}
	return caller.User
}

// IsGuarded reports whether callers may do and see only what bindings give them, as this node knows.
func (s *Server) IsGuarded() bool { return s.node.Book().Mode() == access.Guarded }

// CallerName is the user who made a call that a front end serves; empty for one without a credential.
func CallerName(ctx context.Context) string {
	if caller := identify.CallerOf(ctx); caller != nil {
		return caller.User
	}
	return ""
}
