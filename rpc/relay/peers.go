package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/wire"
)

// Peers asks the other nodes.
type Peers struct {
	Self      string
	Transport http.RoundTripper
	Security  Security
	// Network is true if nodes have listeners of their own.
	Network bool
}

// ClientOf is a client of the PeerService of a member.
func (p Peers) ClientOf(m cluster.Member) peerv1connect.PeerServiceClient {
	return p.clientAt(p.URLOf(m))
}

func (p Peers) clientAt(url string) peerv1connect.PeerServiceClient {
	return peerv1connect.NewPeerServiceClient(p.HTTPClient(), url,
		connect.WithReadMaxBytes(codec.MaxBody))
}

// ReadIndex asks the leader for the index that a linearizable read must wait for, and for ledger time.
func (p Peers) ReadIndex(ctx context.Context, leader cluster.Member) (uint64, quota.Instant, error) {
	answer, err := p.ClientOf(leader).ReadIndex(ctx, &peerv1.ReadIndexRequest{NodeId: p.Self})
	switch {
	case ctx.Err() != nil:
		return 0, 0, ctx.Err()
	case err != nil:
		return 0, 0, &cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s at %q, which should lead, did not confirm it: %v", leader.ID,
				p.AddressOf(leader), err),
		}
	}
	return answer.GetIndex(), quota.Instant(answer.GetLedgerTimeMs()), nil
}

// GetStanding asks a member for its status.
func (p Peers) GetStanding(ctx context.Context, m cluster.Member) (*peerv1.GetStandingResponse, error) {
	url := p.URLOf(m)
	if url == "" {
		return nil, ErrNoAddress
	}
	return p.clientAt(url).GetStanding(ctx, &peerv1.GetStandingRequest{})
}

// TransportConfig configures connections between nodes. The zero value is plain TCP.
type TransportConfig struct {
	Security Security
	// Network, if set, is how nodes call each other apart from clients.
	Network Network
	// Peers, if set, carries calls to other nodes instead of a network.
	Peers http.RoundTripper
	// Silence is after how long without a sign of life the other side is asked for one, and how long its answer may
	// take; then the connection is given up with all its calls. Default 2 s.
	Silence time.Duration
}

// NewPeerTransport carries relayed calls and questions between nodes: HTTP/2 over few connections that are kept alive
// and given up soon when the other side falls silent.
func NewPeerTransport(c TransportConfig) *http.Transport {
	protocols, silence := new(http.Protocols), cmp.Or(c.Silence, 2*time.Second)
	dial := (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext
	var encrypted *tls.Config
	switch {
	case c.Network != nil:
		dial = dialNodes(c.Network)
		protocols.SetUnencryptedHTTP2(true)
	case c.Security.Dial != nil:
		encrypted = c.Security.Dial("")
		protocols.SetHTTP2(true)
	default:
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: encrypted,
		DialContext:     dial,
		// A node that is busy takes its time to prove who it is; one that is gone does not even take the connection.
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: silence, PingTimeout: silence,
			WriteByteTimeout: 2*silence + time.Second,
		},
	}
}

// GetDiagnostics asks a member for its diagnostics, with the credential of the caller.
func (p Peers) GetDiagnostics(ctx context.Context, m cluster.Member) (*adminv1.GetDiagnosticsResponse, error) {
	client := adminv1connect.NewDebugServiceClient(p.HTTPClient(), p.URLOf(m), connect.WithReadMaxBytes(codec.MaxBody))
	ctx, info := connect.NewClientContext(ctx)
	p.PassOn(ctx, info.RequestHeader(), m)
	return client.GetDiagnostics(ctx, &adminv1.GetDiagnosticsRequest{})
}

// PassOn sets the headers of a request to another member that this node makes for a caller.
func (p Peers) PassOn(ctx context.Context, header http.Header, to cluster.Member) {
	identify.PassOn(ctx, header, isForNodes(p.URLOf(to)))
}

// HTTPClient follows no redirect: a request may carry the credential of a caller, and no node redirects.
func (p Peers) HTTPClient() *http.Client {
	return &http.Client{
		Transport:     p.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ListMembers asks the leader, unless the one who asks was asked itself.
func (p Peers) ListMembers(
	ctx context.Context, leader cluster.Member, r *adminv1.ListMembersRequest,
) (*adminv1.ListMembersResponse, error) {
	call, _ := connect.CallInfoForHandlerContext(ctx)
	if call != nil && call.RequestHeader().Get(wire.RelayedByHeader) != "" || p.URLOf(leader) == "" {
		return nil, errNotLeader
	}
	client := adminv1connect.NewClusterServiceClient(p.HTTPClient(), p.URLOf(leader),
		connect.WithReadMaxBytes(codec.MaxBody))
	ctx, info := connect.NewClientContext(ctx)
	info.RequestHeader().Set(wire.RelayedByHeader, p.Self)
	p.PassOn(ctx, info.RequestHeader(), leader)
	return client.ListMembers(ctx, r)
}
