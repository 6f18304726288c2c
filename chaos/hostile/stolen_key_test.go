package hostile

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/verify"
)

// stolenKey is the key of one node in the hands of an attacker, who does not check the certificates of others.
type stolenKey struct {
	id   string
	pair tls.Certificate
}

// stealKey issues a key if the node never joined.
func (c *cluster) stealKey(t *testing.T, id string) stolenKey {
	t.Helper()
	folder := c.certs
	if _, err := tls.LoadX509KeyPair(folder.Cert(id), folder.Key(id)); err != nil {
		authority, err := c.certs.Authority()
		if err != nil {
			t.Fatal(err)
		}
		pair, err := authority.Node(id, []string{"localhost", "127.0.0.1"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		folder = pki.Folder(t.TempDir())
		if err := folder.Write(id, pair); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(folder.Cert(id), folder.Key(id))
	if err != nil {
		t.Fatal(err)
	}
	return stolenKey{id, pair}
}

func (s stolenKey) tlsConfig(protocols ...string) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{s.pair}, InsecureSkipVerify: true, NextProtos: protocols,
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert,
	}
}

// Dial makes the attacker a raft.StreamLayer that only dials.
func (s stolenKey) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", string(address), s.tlsConfig())
}

func (s stolenKey) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (s stolenKey) Close() error              { return nil }
func (s stolenKey) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

// foreignTerm is a term that no test cluster reaches by itself.
const foreignTerm = 1 << 40

// claimToLead sends a heartbeat as the leader of a much later term. It returns nil if raft accepted it.
func (s stolenKey) claimToLead(t *testing.T, n *node) error {
	t.Helper()
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: 1, Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
	})
	defer transport.Close() //nolint:errcheck // it only dialled
	request := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(s.id),
			Addr: []byte("127.0.0.1:9"),
		}, Term: foreignTerm,
	}
	return transport.AppendEntries(raft.ServerID(n.ID), raft.ServerAddress(n.Raft), request,
		&raft.AppendEntriesResponse{})
}

// peerClient returns a client of the service for nodes at an address, with a TLS protocol.
func (s stolenKey) peerClient(t *testing.T, address, protocol string) peerv1connect.PeerServiceClient {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error,
	) {
		c, err := (&tls.Dialer{Config: s.tlsConfig(protocol)}).DialContext(ctx, "tcp", address)
		return struct{ net.Conn }{c}, err // hide that it is a TLS connection
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return peerv1connect.NewPeerServiceClient(&http.Client{Transport: transport, Timeout: 20 * time.Second},
		"http://"+address)
}

// nodeProtocol is the TLS protocol of calls between nodes on the raft port.
const nodeProtocol = "quorate-node/1"

func (c *cluster) awaitServing(t *testing.T, when string) {
	t.Helper()
	for _, n := range c.nodes {
		waitFor(t, when+" "+n.ID+" is not ready", func() bool { return c.isReady(t, n) })
		waitFor(t, when+" "+n.ID+" carries out nothing",
			func() bool { return c.pairsPerSecond(t, n, 2, 300*time.Millisecond) > 0 })
	}
}

// checkTerms checks that no server followed the attacker into a later term.
func (c *cluster) checkTerms(t *testing.T, asked stolenKey) {
	t.Helper()
	for _, n := range c.nodes {
		if !n.Running() {
			continue
		}
		standing, err := asked.peerClient(t, n.Raft, nodeProtocol).
			GetStanding(t.Context(), &peerv1.GetStandingRequest{})
		if err != nil || standing.GetTerm() >= foreignTerm {
			t.Errorf("%s is in term %d: %v", n.ID, standing.GetTerm(), err)
		}
	}
}

// TestKeyOfNodeThatNeverJoined: before the fix, any certificate of the authority could send raft messages, and every
// server followed a message of a later term.
func TestKeyOfNodeThatNeverJoined(t *testing.T) {
	c := startCluster(t, clusterOptions{encrypted: true})
	c.applyTree(t, 1000)
	stranger := c.stealKey(t, "n9")
	for _, n := range c.nodes {
		if err := stranger.claimToLead(t, n); err == nil {
			t.Errorf("raft of %s takes messages from a node that never joined", n.ID)
		}
		if _, err := stranger.peerClient(t, n.Raft, nodeProtocol).
			ReadIndex(t.Context(), &peerv1.ReadIndexRequest{}); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("%s answers a node that never joined: %v", n.ID, err)
		}
	}
	c.checkTerms(t, stranger)
	c.awaitServing(t, "after a stranger claimed to lead")
}

// TestKeyOfRemovedNode: the certificate of a removed node stays valid; before the fix, raft accepted it.
func TestKeyOfRemovedNode(t *testing.T) {
	verify.Only(t) // TestKeyOfNodeThatNeverJoined is the quick one of its kind
	c := startCluster(t, clusterOptions{encrypted: true})
	c.applyTree(t, 1000)
	key := c.stealKey(t, "n3")
	leader, _ := c.findLeader(t)
	waitFor(t, "n3 is not removed", func() bool {
		return runCommand(t, append([]string{"member", "delete", "n3", "--force"}, c.clientFlags(leader)...)...).
			code == 0
	})
	c.nodes[2].Kill()
	c.nodes = c.nodes[:2]
	c.awaitReady(t)
	for _, n := range c.nodes {
		if err := key.claimToLead(t, n); err == nil {
			t.Errorf("raft of %s takes messages from a removed node", n.ID)
		}
	}
	c.checkTerms(t, key)
	c.awaitServing(t, "after a removed node claimed to lead")
}

// TestKeyOfAnotherMember: the key of member n3 cannot act as n2 or as the leader: neither for notices, nor at the
// addresses of n2, and its calls as a client have the rights of a client only.
func TestKeyOfAnotherMember(t *testing.T) {
	verify.Only(t) // TestKeyOfNodeThatNeverJoined is the quick one of its kind
	c := startCluster(t, clusterOptions{encrypted: true})
	c.applyTree(t, 1000)
	leader, victim := c.findLeader(t)
	var id string
	for _, n := range c.nodes {
		if n != leader && n != victim {
			id = n.ID
		}
	}
	key := c.stealKey(t, id)
	for _, names := range []string{id, leader.ID} {
		notice := &peerv1.NotifyRequest{LeaderId: names}
		for port, peers := range map[string]peerv1connect.PeerServiceClient{
			"the port of raft":     key.peerClient(t, victim.Raft, nodeProtocol),
			"the port for clients": key.peerClient(t, victim.HTTP, "h2"),
		} {
			if _, err := peers.Notify(t.Context(), notice); err == nil {
				t.Errorf("%s takes a notice of %s in the name of %s at %s", victim.ID, id, names, port)
			}
		}
	}
	relayed, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		victim.URL()+"/quorate.v1.AllocationService/Allocate", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	relayed.Header.Set("Content-Type", "application/json")
	relayed.Header.Set("Quorate-Relayed-By", leader.ID)
	answer, err := c.httpClient(t, "").Do(relayed)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "Quorate-Relayed-By") {
		t.Errorf("a client's call that says it was relayed: %d %s", answer.StatusCode, text)
	}
	c.impersonateNode(t, victim, key)
	victim.Start(t)
	c.awaitReady(t)
	c.awaitServing(t, "after an impostor took the place of "+victim.ID)
}

// impersonateNode kills a server and listens at its addresses with the key of another node. No server may send
// anything to it, and the killed server keeps its vote.
func (c *cluster) impersonateNode(t *testing.T, victim *node, key stolenKey) {
	t.Helper()
	victim.Kill()
	var attempts, heard atomic.Int64
	for _, address := range []string{victim.Raft, victim.HTTP} {
		var listener net.Listener
		waitFor(t, address+" does not get free", func() bool {
			var err error
			listener, err = tls.Listen("tcp", address, key.tlsConfig(nodeProtocol, "h2"))
			return err == nil
		})
		defer listener.Close() //nolint:errcheck // the server needs it again
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				attempts.Add(1)
				go func() {
					defer connection.Close() //nolint:errcheck // it is an attack
					count, _ := io.Copy(io.Discard, connection)
					heard.Add(count)
				}()
			}
		}()
	}
	rest := &cluster{certs: c.certs}
	for _, n := range c.nodes {
		if n != victim {
			rest.nodes = append(rest.nodes, n)
		}
	}
	waitFor(t, "no server calls "+victim.ID, func() bool { return attempts.Load() > 3 })
	rest.awaitServing(t, "while an impostor has the addresses of "+victim.ID)
	if said := heard.Load(); said > 0 {
		t.Errorf("%d bytes were sent to an impostor", said)
	}
	end := runCommand(t, append([]string{"member", "list"}, rest.clientFlags(rest.nodes[0])...)...)
	if line := lineOf(end.stdout, victim.ID); !strings.Contains(line, "voter") || strings.Contains(line, "non-voter") {
		t.Errorf("%s lost its vote to an impostor: %s", victim.ID, end.stdout)
	}
}

func lineOf(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin+" ") {
			return line
		}
	}
	return ""
}
