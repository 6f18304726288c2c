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
	// DialAPI connects to the listener for clients of a node, as all nodes did before feature level 5.
	DialAPI(ctx context.Context, id, address string) (net.Conn, error)
}

// InternalLevel is the feature level from which on all members have a listener for nodes. Below it, members of
// earlier versions are called where clients call them, and may call so themselves.
const InternalLevel = 5

// The ports of URLs say which listener of a node is meant. What stands before them is the node's id and the address
// to dial: a connection is kept for calls to both together, so a call never goes over one that was made to another
// node.
const (
	NodePort = "1"
	apiPort  = "2"
)

// URLOf returns the base URL for calls to another node; empty if its address is unknown. The address is that of raft's
// configuration. Only members that announced a level below internalLevel, in a cluster below it, are called at the
// address that they announced.
func (p Peers) URLOf(m cluster.Member) string {
	if !p.Network {
		if m.HTTPAddr == "" {
			return ""
		}
		return p.Security.baseURL(m.HTTPAddr)
	}
	if m.FeatureLevel > 0 && m.FeatureLevel < InternalLevel && m.HTTPAddr != "" && p.Level() < InternalLevel {
		return NodeURL(m.ID, m.HTTPAddr, apiPort)
	}
	if m.RaftAddr == "" {
		return ""
	}
	return NodeURL(m.ID, m.RaftAddr, NodePort)
}

// earlierURL is where a node was called before it had a listener for nodes; empty if that would not be right any more.
func (p Peers) earlierURL(m cluster.Member) string {
	if !p.Network || m.HTTPAddr == "" || p.Level() >= InternalLevel {
		return ""
	}
	return NodeURL(m.ID, m.HTTPAddr, apiPort)
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

// SplitNodeURL is the inverse of nodeURL, for what stands behind the scheme.
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

// dialNodes dials what nodeURL names.
func dialNodes(network Network) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, host string) (net.Conn, error) {
		id, address, port, err := SplitNodeURL(host)
		switch {
		case err != nil:
			return nil, err
		case port == apiPort:
			return network.DialAPI(ctx, id, address)
		}
		return network.DialNode(ctx, id, address)
	}
}

// WithHostAddress gives a request the host that it is sent to instead of what nodeURL made of it.
func WithHostAddress(r *http.Request) *http.Request {
	_, address, _, err := SplitNodeURL(r.URL.Host)
	if err != nil {
		return r
	}
	sent := *r
	sent.Host = address
	return &sent
}
