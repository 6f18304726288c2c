package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// ServeNodes serves calls of other nodes on the listener of the network until Shutdown, or until the node closes the
// listener when it stops.
func (s *Server) ServeNodes() error {
	l := s.network.Calls()
	if err := s.nodes.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serving other nodes on %s: %w", l.Addr(), err)
	}
	return nil
}

func newNodeServer(public *http.Server, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: handler, Protocols: protocols, ErrorLog: public.ErrorLog, HTTP2: public.HTTP2,
		BaseContext:       public.BaseContext,
		ReadHeaderTimeout: admission.HeaderPatience, IdleTimeout: admission.IdlePatience, WriteTimeout: public.WriteTimeout,
		MaxHeaderBytes: 2 * admission.MaxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			from := relay.NodeCall{Internal: true}
			if node, ok := c.(interface{ NodeID() string }); ok {
				from.ID = node.NodeID()
			}
			return context.WithValue(ctx, relay.NodeCallKey{}, from)
		},
	}
}

func (s *Server) nodeRoutes(streams context.Context, api http.Handler) http.Handler {
	a := s.admission
	return s.newPipeline(api,
		s.observer.ObserveCall, a.IssueTicket, s.admitNode, s.identifier.Authenticate, a.AttributeUser, a.AdmitMemberCall,
		a.EndWithServer(streams), s.identifier.EndWithCredential, a.LimitTime, a.LimitBody, a.LimitElements,
		s.forwarder.ForwardWrites, s.authorizer.AuthorizeCall, a.LimitDecoded, s.prepareCall)
}

// admitNode admits calls of members. The status of this node is told to every node of the cluster: one that is to be
// taken in asks for it, and one that was removed.
func (s *Server) admitNode(x *pipeline.Exchange) bool {
	w, r := x.Writer, x.Request
	from := relay.NodeCallOf(r.Context())
	known := s.procedures[r.URL.Path]
	if known.Kind != procedures.ServesClients && known.Kind != procedures.ServesMembers {
		s.admission.NotFound(w, r)
		return false
	}
	if from.ID != "" && r.URL.Path != peerv1connect.PeerServiceGetStandingProcedure {
		if err := s.node.AuthorizePeer(from.ID); err != nil {
			w.Header().Set("Connection", "close")
			s.observer.WriteError(w, r, connect.NewError(connect.CodePermissionDenied, err))
			return false
		}
	}
	if from.ID == "" && !s.hasNoCertificate(x) {
		return false
	}
	if known.Kind == procedures.ServesClients && (from.ID != "" || r.Header.Get(wire.RelayedByHeader) == "") {
		r.Header.Set(wire.RelayedByHeader, from.DisplayName())
	}
	return true
}

// hasNoCertificate refuses a call with the certificate of a client from a node that did not prove to be one: in a
// cluster in plain text no client has shown a certificate to any node.
func (s *Server) hasNoCertificate(x *pipeline.Exchange) bool {
	for _, name := range []string{authn.ClientCertHeader, authn.ClientCertChainHeader} {
		if len(x.Request.Header.Values(name)) > 0 {
			s.refuseHeader(x, name)
			return false
		}
	}
	return true
}

// refuseInternal refuses requests of clients that carry headers which only nodes set, or which say what a proxy would
// say of a client's certificate. Only without a network for nodes do members relay over the listener for clients, with
// their certificate if they have one.
func (s *Server) refuseInternal(x *pipeline.Exchange) bool {
	for name := range x.Request.Header {
		internal := strings.HasPrefix(name, "Quorate-") || strings.HasPrefix(name, "Client-Cert")
		if !internal || name == wire.RelayedByHeader && s.mayBeRelayed(x.Request) {
			continue
		}
		s.refuseHeader(x, name)
		return false
	}
	return true
}

func (s *Server) refuseHeader(x *pipeline.Exchange, name string) {
	s.metrics.RefusedHeaders.Inc()
	s.admission.RefuseCall(x.Writer, x.Request, wire.ToError(wire.InvalidField(
		name, "the header %s is for nodes among themselves; send the request without it", name)))
}

func (s *Server) mayBeRelayed(r *http.Request) bool {
	if s.network != nil {
		return false
	}
	if s.peers.Security.NodeOf == nil {
		return true
	}
	_, err := s.peers.Security.NodeOf(r.TLS)
	return err == nil
}

// refuseClients serves the service of nodes on the listener for clients only if they have no network of their own.
func (s *Server) refuseClients(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.network != nil && !relay.NodeCallOf(r.Context()).Internal {
			s.observer.WriteError(
				w, r, connect.NewError(connect.CodePermissionDenied,
					fmt.Errorf("%s is served to nodes only, on their own listener", peerv1connect.PeerServiceName)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// relayedByMember reports whether another member relays the call. In plain text every caller may claim to be one.
func (s *Server) relayedByMember(r *http.Request) bool {
	if relay.NodeCallOf(r.Context()).Internal {
		return true
	}
	if r.Header.Get(wire.RelayedByHeader) == "" {
		return false
	}
	if s.peers.Security.NodeOf == nil {
		return true
	}
	_, err := s.peers.Security.NodeOf(r.TLS)
	return err == nil
}

// Status requests the status of another node. With Notify it implements the argument of [cluster.Node.SetPeerClient].
func (s *Server) Status(ctx context.Context, m cluster.Member) (cluster.NodeStatus, error) {
	answer, err := s.peers.GetStanding(ctx, m)
	if err != nil {
		return cluster.NodeStatus{}, fmt.Errorf("%s does not answer at %q: %w", m.ID, s.peers.AddressOf(m), err)
	}
	return wire.StandingFromWire(answer), nil
}

// Notify informs another node of its role in the cluster.
func (s *Server) Notify(ctx context.Context, m cluster.Member, notice cluster.Notice) error {
	_, err := s.peers.ClientOf(m).Notify(ctx, wire.NoticeToWire(notice))
	return err
}
