package main_test

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// TestTheProcessManagerIsTold: the server says to what supervises it that it serves, that it makes progress, and that
// it stops, as the unit in deploy/ asks for.
func TestTheProcessManagerIsTold(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	messages := listenForNotices(t, socket)
	f := singleServer(t)
	p := startWithEnv(t, []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=200000"}, f.commandLine()...)
	awaitCondition(t, "the server did not say that it serves", func() bool { return messages.count("READY=1") == 1 })
	awaitCondition(t, "the watchdog got nothing", func() bool { return messages.count("WATCHDOG=1") >= 3 })
	awaitReady(t, p, f)
	if n := messages.count("STOPPING=1"); n != 0 {
		t.Errorf("the server said %d times that it stops", n)
	}
	p.stopCleanly(t)
	awaitCondition(t, "the server did not say that it stops", func() bool { return messages.count("STOPPING=1") == 1 })
}

// notices counts what a server sent to its process manager.
type notices struct {
	mu     sync.Mutex
	counts map[string]int
}

func (n *notices) count(message string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[message]
}

func listenForNotices(t *testing.T, path string) *notices {
	t.Helper()
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	n := &notices{counts: map[string]int{}}
	go func() {
		message := make([]byte, 1<<10)
		for {
			size, err := listener.Read(message)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.counts[string(message[:size])]++
			n.mu.Unlock()
		}
	}()
	return n
}
