package nodes

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestNetwork connects two namespaces, cuts one way between them, and lets them be.
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
	if err := n.namespaces[1].runInside(func() error { return echo(t, nodeHostPort(1, apiPort)) }); err != nil {
		t.Fatal(err)
	}
	if _, err := net.InterfaceByName(deviceName); err == nil {
		t.Error("an interface of the nodes is outside of their namespaces")
	}
	insist(t, n)
	n.packets.setLink(1, 0, Link{Cut: true})
	if said, err := call(t, n, time.Second); err == nil {
		t.Errorf("%q came over a way that is cut", said)
	}
	n.packets.setLink(1, 0, Link{})
	insist(t, n)
	insistAtTheDoor(t, n)
}

// echo listens in the present namespace and answers whoever comes with a word.
func echo(t *testing.T, address string) error {
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

// call asks node 1 from node 0.
func call(t *testing.T, n *network, within time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	conn, err := n.dialNode(ctx, 0, "tcp4", nodeHostPort(1, apiPort))
	if err != nil {
		return "", err
	}
	return hear(conn, within)
}

func hear(conn net.Conn, within time.Duration) (string, error) {
	defer conn.Close() //nolint:errcheck // reading only
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	buffer := make([]byte, 16)
	length, err := conn.Read(buffer)
	return string(buffer[:length]), err
}

// insist calls until it is answered.
func insist(t *testing.T, n *network) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		said, err := call(t, n, 5*time.Second)
		if err == nil && said == "hello" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node 1 says %q to node 0: %v", said, err)
		}
	}
}

// insistAtTheDoor calls node 1 from outside, by its door.
func insistAtTheDoor(t *testing.T, n *network) {
	t.Helper()
	address, err := n.openForwarder(1, nodeHostPort(1, apiPort))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := hear(conn, 2*time.Minute); err != nil || said != "hello" {
		t.Errorf("node 1 says %q at its door: %v", said, err)
	}
}
