package host

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/internal/pki"
)

func openPort(t testing.TB) *streamLayer {
	t.Helper()
	s, err := listenRaft("127.0.0.1:0", "ignored:1", Security{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	s.open.setAuthorizer(func(string) error { return nil })
	t.Cleanup(func() { _ = s.closePort() })
	return s
}

func (s *streamLayer) addressAs() string { return s.port.listener.Addr().String() }

func acceptOne(l net.Listener) <-chan net.Conn {
	next := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			next <- c
		}
	}()
	return next
}

func readLine(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestTheFirstByteTellsRaftFromCalls: in plain text only the first byte does, and neither side loses a byte.
func TestTheFirstByteTellsRaftFromCalls(t *testing.T) {
	t.Parallel()
	s := openPort(t)
	for first, l := range map[string]net.Listener{
		"\x00": s, "\x0f": s, "PRI * HTTP/2.0\r": (&Network{s}).Calls(),
	} {
		next := acceptOne(l)
		c, err := net.Dial("tcp", s.addressAs())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, first+" and so on\n"); err != nil {
			t.Fatal(err)
		}
		if got := readLine(t, <-next); got != first+" and so on\n" {
			t.Errorf("sent %q, received %q", first, got)
		}
	}
	for _, first := range []string{"\x10", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "\xff"} {
		c, err := net.Dial("tcp", s.addressAs())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, first)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q was taken: %v", first, err)
		}
		_ = c.Close()
	}
}

// TestTheHandshakeTellsRaftFromCalls: with certificates ALPN does, and the certificate identifies the other node.
func TestTheHandshakeTellsRaftFromCalls(t *testing.T) {
	t.Parallel()
	m := newConnectionTest(t)
	network := &Network{m.n1}
	calls := acceptOne((&Network{m.n2}).Calls())
	c, err := network.DialNode(t.Context(), "n2", m.n2.addressAs())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if node := (<-calls).(*connection).NodeID(); node != "n1" {
		t.Errorf("the caller is %q, want n1", node)
	}
	next := acceptOne(m.n2)
	spoken, err := m.n1.Dial(withID("n2", raft.ServerAddress(m.n2.addressAs())), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spoken.Close() }()
	if got := <-next; got.(*connection).calls || got.(*connection).node != "n1" {
		t.Errorf("raft's connection was taken for %+v", got)
	}
}

// TestOnlyTheNodeThatWasCalledAnswers: n2 has a valid certificate, and still gets no data when n3 is called at n2's
// address.
func TestOnlyTheNodeThatWasCalledAnswers(t *testing.T) {
	t.Parallel()
	m := newConnectionTest(t)
	network := &Network{m.n1}
	for what, dial := range map[string]func() (net.Conn, error){
		"raft": func() (net.Conn, error) {
			return m.n1.Dial(withID("n3", raft.ServerAddress(m.n2.addressAs())), time.Minute)
		},
		"calls": func() (net.Conn, error) { return network.DialNode(t.Context(), "n3", m.n2.addressAs()) },
	} {
		c, err := dial()
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: n2 answers for n3", what)
			continue
		}
		if mismatch := (*pki.PeerError)(nil); !errors.As(err, &mismatch) ||
			!strings.Contains(err.Error(), "node n3 was called") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRaftIsSpokenWithMembersOnly: a node that is not a member gets no raft connection, and loses an existing one when
// it is removed. It may still make RPCs.
func TestRaftIsSpokenWithMembersOnly(t *testing.T) {
	t.Parallel()
	m := newConnectionTest(t)
	var removed atomic.Bool
	m.n2.open.setAuthorizer(func(id string) error {
		if id == "n1" && removed.Load() {
			return errors.New("node n1 was removed")
		}
		return nil
	})
	closed := connectTo(t, m.n1, m.n2)
	removed.Store(true)
	m.awaitClosed(t, "of a node that was removed", closed)
	c, err := m.n1.Dial(withID("n2", raft.ServerAddress(m.n2.addressAs())), time.Minute)
	if err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err = c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a removed node gets a connection for raft")
		}
		_ = c.Close()
	}
	calls := acceptOne((&Network{m.n2}).Calls())
	asked, err := (&Network{m.n1}).DialNode(t.Context(), "n2", m.n2.addressAs())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asked.Close() }()
	<-calls
}

// TestConnectionsOfOneNodeAreBounded: the newest connection beyond the bound is refused, and closing one frees its
// place.
func TestConnectionsOfOneNodeAreBounded(t *testing.T) {
	t.Parallel()
	open := newConnectionPool(Security{Identify: func(tls.ConnectionState) (string, error) { return "n2", nil }},
		hclog.NewNullLogger())
	defer open.close()
	var first *connection
	for range maxPerNode {
		plain, other := net.Pipe()
		defer func() { _ = other.Close() }()
		first = &connection{Conn: plain, accepted: true}
		if err := open.trackConn(first); err != nil {
			t.Fatal(err)
		}
	}
	plain, other := net.Pipe()
	defer func() { _ = other.Close() }()
	if err := open.trackConn(&connection{Conn: plain, accepted: true}); err == nil {
		t.Error("there is no bound")
	}
	_, _ = first.Close(), first.Close()
	if err := open.trackConn(&connection{Conn: plain, accepted: true}); err != nil {
		t.Error(err)
	}
	if err := open.trackConn(&connection{Conn: plain, accepted: true}); err == nil {
		t.Error("closing one connection twice freed two places")
	}
}

// FuzzPortOfRaft sends arbitrary bytes; the port must continue to serve other connections.
func FuzzPortOfRaft(f *testing.F) {
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{})
	s := openPort(f)
	go drainConn(s)
	go drainConn((&Network{s}).Calls())
	f.Fuzz(func(t *testing.T, sent []byte) {
		c, err := net.Dial("tcp", s.addressAs())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open although nothing more will come")
		}
		_ = c.Close()
	})
}

func drainConn(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
	}
}

// TestCallsOutliveRaft: a node whose raft has ended, as in quarantine, still answers status queries.
func TestCallsOutliveRaft(t *testing.T) {
	s, err := listenRaft("127.0.0.1:0", "n1:1", Security{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.closePort() })
	network := &Network{s}
	calls := network.Calls()
	if err := s.Close(); err != nil { // as raft does at its end
		t.Fatal(err)
	}
	if _, err := s.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("raft's listener answers %v after its end", err)
	}
	for first, served := range map[byte]bool{firstHTTP2Byte: true, 0: false} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Write([]byte{first}); err != nil {
			t.Fatal(err)
		}
		if served {
			accepted, err := calls.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = accepted.Close()
			continue
		}
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection of raft is kept: %v", err)
		}
	}
}
