package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
)

// nodeCallKey finds the node that made a call.
type nodeCallKey struct{}

// nodeCall is the other side of a connection between nodes.
type nodeCall struct {
	id string // that it proved to be; empty in plain text
	// internal is true if the call came over the listener for nodes.
	internal bool
}

// nodeCallOf finds the node that made a call, if one did.
func nodeCallOf(ctx context.Context) nodeCall {
	found, _ := ctx.Value(nodeCallKey{}).(nodeCall)
	return found
}

// ServeNodes answers calls of other nodes on the listener of the network until it is closed, which the node does when it ends, or
// until Shutdown.
func (s *Server) ServeNodes() error {
	l := s.network.Calls()
	if err := s.nodes.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serving other nodes on %s: %w", l.Addr(), err)
	}
	return nil
}

// newNodeServer answers other nodes.
func newNodeServer(of *http.Server, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: handler, Protocols: protocols, ErrorLog: of.ErrorLog, HTTP2: of.HTTP2, BaseContext: of.BaseContext,
		ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, WriteTimeout: of.WriteTimeout, MaxHeaderBytes: 2 * maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			from := nodeCall{internal: true}
			if node, ok := c.(interface{ NodeID() string }); ok {
				from.id = node.NodeID()
			}
			return context.WithValue(ctx, nodeCallKey{}, from)
		},
	}
}

// nodeRoutes puts the services behind what every call of another node passes.
func (s *Server) nodeRoutes(streams context.Context, api http.Handler) http.Handler {
	a := s.admission
	call := a.limitTime(a.limitBody(a.limitElements(s.forwarder.forwardWrites(a.limitDecoded(forbidCaching(api))))))
	return s.receiveCalls(s.admitNode(a.endWithServer(streams, call)))
}

// admitNode lets in calls of members. How this node stands is told to every node of the cluster: one that is to be taken in
// asks that, and one that was removed.
func (s *Server) admitNode(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := nodeCallOf(r.Context())
		known := s.procedures[r.URL.Path]
		if known.kind != servesClients && known.kind != servesMembers {
			s.admission.notFound(w, r)
			return
		}
		if from.id != "" && r.URL.Path != peerv1connect.PeerServiceGetStandingProcedure {
			if err := s.node.AuthorizePeer(from.id); err != nil {
				w.Header().Set("Connection", "close")
				s.observer.writeError(w, r, connect.NewError(connect.CodePermissionDenied, err))
				return
			}
		}
		if known.kind == servesClients && (from.id != "" || r.Header.Get(relayedByHeader) == "") {
			r.Header.Set(relayedByHeader, from.displayName())
		}
		s.admission.serveInSlot(s.admission.limiterFor(known, ticketOf(r.Context()).limiters), w, r, next)
	})
}

// displayName names a node for people.
func (c nodeCall) displayName() string {
	if c.id == "" {
		return "a node"
	}
	return c.id
}

// isStrict tells whether nodes call each other over their own listener only.
func (s *Server) isStrict() bool { return s.network != nil && s.node.Level().Current >= internalLevel }

// refuseInternal refuses requests of clients that carry headers which only nodes set, or which say what a proxy would say of a
// client's certificate. Members of earlier versions relay over the listener for clients, with their certificate if they have one,
// for as long as the feature level allows them.
func (s *Server) refuseInternal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			internal := strings.HasPrefix(name, "Quorate-") || strings.HasPrefix(name, "Client-Cert")
			if !internal || name == relayedByHeader && s.fromEarlierNode(r) {
				continue
			}
			s.metrics.refusedHeaders.Inc()
			s.admission.refuseCall(w, r, toError(invalidField(name, "the header %s is for nodes among themselves; send the request without it", name)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromEarlierNode tells whether a request may come from a member that does not know the listener for nodes.
func (s *Server) fromEarlierNode(r *http.Request) bool {
	if s.isStrict() {
		return false
	}
	if s.peers.security.NodeOf == nil {
		return true
	}
	_, err := s.peers.security.NodeOf(r.TLS)
	return err == nil
}

// refuseClients serves the service of nodes to clients' listener only as long as members need it that know no other.
func (s *Server) refuseClients(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isStrict() && !nodeCallOf(r.Context()).internal {
			s.observer.writeError(w, r, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s is served to nodes only, on their own listener", peerv1connect.PeerServiceName)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// relayedByMember tells whether another member relays the call. In plain text everyone may be a member.
func (s *Server) relayedByMember(r *http.Request) bool {
	if nodeCallOf(r.Context()).internal {
		return true
	}
	if r.Header.Get(relayedByHeader) == "" {
		return false
	}
	if s.peers.security.NodeOf == nil {
		return true
	}
	_, err := s.peers.security.NodeOf(r.TLS)
	return err == nil
}
