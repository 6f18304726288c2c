package relay

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/quorate/quorate/cluster"
)

// Network is how nodes call each other apart from clients; [host.Network] is one. What it dials and accepts is plain
// HTTP/2 from the first byte: who is on the other side was settled before.
type Network interface {
	// Calls accepts the connections of other nodes. A connection that has a method NodeID names the node that it
	// comes from.
	Calls() net.Listener
	// DialNode connects to that listener of a node, which is at its raft address.
	DialNode(ctx context.Context, id, raftAddress string) (net.Conn, error)
}

// NodePort is the port of URLs that stand for the listener for nodes. What stands before it is the node's id and the
// address to dial: a connection is kept for calls to both together, so a call never goes over one that was made to
// another node.
const NodePort = "1"

// URLOf returns the base URL for calls to another node; empty if its address is unknown. The address is that of raft's
// configuration.
func (p Peers) URLOf(m cluster.Member) string {
	if !p.Network {
		if m.HTTPAddr == "" {
			return ""
		}
		return p.Security.baseURL(m.HTTPAddr)
	}
	if m.RaftAddr == "" {
		return ""
	}
	return NodeURL(m.ID, m.RaftAddr, NodePort)
}

// AddressOf is the address that a call to another node goes to, for people.
func (p Peers) AddressOf(m cluster.Member) string {
	if _, address, _, err := SplitNodeURL(strings.TrimPrefix(p.URLOf(m), "http://")); err == nil && p.Network {
		return address
	}
	return m.HTTPAddr
}

// NodeURL names a node, the address to dial and the listener in one URL.
func NodeURL(id, address, port string) string {
	return "http://" + id + "." + hex.EncodeToString([]byte(address)) + ":" + port
}

// SplitNodeURL is the inverse of NodeURL, for what stands behind the scheme.
func SplitNodeURL(host string) (id, address, port string, err error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return "", "", "", err
	}
	dot := strings.LastIndexByte(name, '.')
	text, err := hex.DecodeString(name[dot+1:])
	if err != nil || dot < 0 {
		return "", "", "", fmt.Errorf("%q does not name a node and its address", host)
	}
	return name[:dot], string(text), port, nil
}

func dialNodes(network Network) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, host string) (net.Conn, error) {
		id, address, _, err := SplitNodeURL(host)
		if err != nil {
			return nil, err
		}
		return network.DialNode(ctx, id, address)
	}
}

// WithHostAddress gives a request the host that it is sent to instead of what NodeURL made of it.
func WithHostAddress(r *http.Request) *http.Request {
	_, address, _, err := SplitNodeURL(r.URL.Host)
	if err != nil {
		return r
	}
	sent := *r
	sent.Host = address
	return &sent
}
