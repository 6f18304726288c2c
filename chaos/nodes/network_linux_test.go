package nodes

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestNetwork connects two namespaces, cuts the link one way, and closes them.
func TestNetwork(t *testing.T) {
	n, err := newNetwork(2, 1)
	if err != nil {
		t.Skip("left out here:", err)
	}
	defer func() {
		if err := n.shutDown(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.namespaces[1].runInside(func() error { return serveWord(t, nodeHostPort(1, apiPort)) }); err != nil {
		t.Fatal(err)
	}
	if _, err := net.InterfaceByName(deviceName); err == nil {
		t.Error("an interface of the nodes is outside of their namespaces")
	}
	callUntilAnswered(t, n)
	n.packets.setLink(1, 0, Link{Cut: true})
	if said, err := callThroughNetwork(t, n, time.Second); err == nil {
		t.Errorf("%q came over a link that is cut", said)
	}
	n.packets.setLink(1, 0, Link{})
	callUntilAnswered(t, n)
	callForwarderUntilAnswered(t, n)
}

func serveWord(t *testing.T, address string) error {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("hello"))
			_ = conn.Close()
		}
	}()
	return nil
}

func callThroughNetwork(t *testing.T, n *network, within time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	conn, err := n.dialNode(ctx, 0, "tcp4", nodeHostPort(1, apiPort))
	if err != nil {
		return "", err
	}
	return readWord(conn, within)
}

func readWord(conn net.Conn, within time.Duration) (string, error) {
	defer conn.Close() //nolint:errcheck // reading only
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	buffer := make([]byte, 16)
	length, err := conn.Read(buffer)
	return string(buffer[:length]), err
}

func callUntilAnswered(t *testing.T, n *network) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		said, err := callThroughNetwork(t, n, 5*time.Second)
		if err == nil && said == "hello" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node 1 says %q to node 0: %v", said, err)
		}
	}
}

func callForwarderUntilAnswered(t *testing.T, n *network) {
	t.Helper()
	address, err := n.openForwarder(1, func() string { return nodeHostPort(1, apiPort) })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := readWord(conn, 2*time.Minute); err != nil || said != "hello" {
		t.Errorf("node 1 says %q through its forwarder: %v", said, err)
	}
}
