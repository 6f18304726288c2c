package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
)

// Security is how nodes authenticate each other. The zero value is plain text: then every caller may claim to be a
// node.
type Security struct {
	// Dial is for calls to the node of that id, and verifies that it is; nil in plain text. A Network dials by itself.
	Dial func(id string) *tls.Config
	// NodeOf returns the id of the node that opened a connection, or an error if it was not a node.
	NodeOf func(*tls.ConnectionState) (id string, err error)
	// CheckClient is an error if the certificate of a connection, or that there is none, would not be taken from a
	// client now. Nil if nothing is asked of clients.
	CheckClient func(*tls.ConnectionState) error
	// ClientChain returns the certificates of a client's connection, the leaf first; the handshake proved its key. Nil if
	// certificates do not identify callers.
	ClientChain func(*tls.ConnectionState) []*x509.Certificate
	// ClientRoots returns the authorities of client certificates; the same pool until they change.
	ClientRoots func() *x509.CertPool
	// ClientRequired is true if every client must have a certificate. A token beside it then names the caller.
	ClientRequired bool
	// Version rises whenever Dial would show or trust other certificates than before. Nil if that never happens.
	Version func() uint64
}

func (s Security) baseURL(address string) string {
	if s.Dial == nil {
		return "http://" + address
	}
	return "https://" + address
}

// NodesOnly refuses all callers but the nodes of the cluster. A refusal also closes the connection after the calls on
// it, so that a node whose certificate was renewed presents the new one.
func (s Security) NodesOnly(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	if s.NodeOf == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if NodeCallOf(r.Context()).Internal {
			next.ServeHTTP(w, r)
			return
		}
		id, err := s.NodeOf(r.TLS)
		if err != nil {
			w.Header().Set("Connection", "close")
			refuse(w, r, connect.NewError(connect.CodePermissionDenied,
				fmt.Errorf("%s is for nodes: %w", peerv1connect.PeerServiceName, err)))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), NodeCallKey{}, NodeCall{ID: id})))
	})
}

// NodeCallKey finds the node that made a call.
type NodeCallKey struct{}

// NodeCall is the other side of a connection between nodes.
type NodeCall struct {
	ID string // that it proved to be; empty in plain text
	// Internal is true if the call came over the listener for nodes.
	Internal bool
}

// NodeCallOf finds the node that made a call, if one did.
func NodeCallOf(ctx context.Context) NodeCall {
	found, _ := ctx.Value(NodeCallKey{}).(NodeCall)
	return found
}

// DisplayName names a node for people.
func (c NodeCall) DisplayName() string {
	if c.ID == "" {
		return "a node"
	}
	return c.ID
}
