package host

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/internal/pki"
)

// connectionTest is two stream layers, of n1 and n2, with control over the connections of n1.
type connectionTest struct {
	n1, n2  *streamLayer
	version atomic.Uint64
	refuses atomic.Bool
}

func newConnectionTest(t *testing.T) *connectionTest {
	t.Helper()
	authority, own, err := pki.NewAuthority("blue", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	folder := pki.Folder(filepath.Join(t.TempDir(), "certs"))
	if err := folder.Init(own); err != nil {
		t.Fatal(err)
	}
	m := &connectionTest{}
	m.n1 = listenSecured(t, authority, folder, "n1", m)
	m.n2 = listenSecured(t, authority, folder, "n2", nil)
	return m
}

// listenSecured takes nil as m for a node without control of its connections.
func listenSecured(t *testing.T, authority *pki.Authority, folder pki.Folder, id string,
	m *connectionTest,
) *streamLayer {
	t.Helper()
	pair, err := authority.Node(id, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Write(id, pair); err != nil {
		t.Fatal(err)
	}
	store, err := pki.Open(folder.Files(id), "blue", id, nil)
	if err != nil {
		t.Fatal(err)
	}
	security := Security{Accept: store.Accept(), Dial: store.Dial, Identify: store.Identify}
	if m != nil {
		security.Version, security.Identify = m.version.Load, func(c tls.ConnectionState) (string, error) {
			if m.refuses.Load() {
				return "", errors.New("its certificate has ended")
			}
			return store.Identify(c)
		}
	}
	s, err := listenRaft("127.0.0.1:0", "ignored:1", security, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	s.open.setAuthorizer(func(string) error { return nil })
	t.Cleanup(func() { _ = s.closePort() })
	return s
}

func connectTo(t *testing.T, from, to *streamLayer) (closed chan error) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := to.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	dialled, err := from.Dial(withID("", raft.ServerAddress(to.Listener.Addr().String())), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	closed = make(chan error, 2)
	for _, c := range []net.Conn{dialled, <-accepted} {
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := io.Copy(io.Discard, c)
			closed <- err
		}()
	}
	return closed
}

func (m *connectionTest) awaitClosed(t *testing.T, why string, closed chan error) {
	t.Helper()
	for range 2 {
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatalf("a connection stays open %s", why)
		}
	}
}

// TestConnectionsOfRaftAreRenewed: connections that n1 dialed or accepted close when its own certificates change and
// when the other side would be refused; others stay, and new ones are made at once.
func TestConnectionsOfRaftAreRenewed(t *testing.T) {
	t.Parallel()
	m := newConnectionTest(t)
	out, in := connectTo(t, m.n1, m.n2), connectTo(t, m.n2, m.n1)
	select {
	case err := <-out:
		t.Fatalf("a good connection was closed: %v", err)
	case err := <-in:
		t.Fatalf("a good connection was closed: %v", err)
	case <-time.After(3 * verifyEvery):
	}
	m.version.Add(1)
	m.awaitClosed(t, "after a renewal of n1, which dialed it", out)
	m.awaitClosed(t, "after a renewal of n1, which accepted it", in)
	out, in = connectTo(t, m.n1, m.n2), connectTo(t, m.n2, m.n1)
	m.refuses.Store(true)
	m.awaitClosed(t, "although n1, which dialed it, no longer accepts n2", out)
	m.awaitClosed(t, "although n1, which accepted it, no longer accepts n2", in)
	if left := len(m.n1.open.openConns()); left != 0 {
		t.Errorf("%d closed connections are still kept", left)
	}
}
