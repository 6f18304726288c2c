package servertest

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

// TestPortsAreFree takes more ports than a block has, and uses all of them at once.
func TestPortsAreFree(t *testing.T) {
	addresses := FreePorts(t, 2*blockSize)
	seen := map[string]bool{}
	for _, address := range addresses {
		if seen[address] {
			t.Errorf("%s is there twice", address)
		}
		seen[address] = true
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer tcp.Close() //nolint:errcheck // nothing was sent
		udp, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close() //nolint:errcheck // nothing was sent
		if port := tcp.Addr().(*net.TCPAddr).Port; port < 16_000 || port >= 32_000 {
			t.Errorf("port %d", port)
		}
	}
	for _, address := range FreePorts(t, 2) {
		if seen[address] {
			t.Errorf("%s was taken before", address)
		}
	}
}

// TestUsedPortsAreNotTaken occupies the next ports, one for TCP and one for UDP.
func TestUsedPortsAreNotTaken(t *testing.T) {
	p := ports{lowest: lowestPort, count: blockCount}
	if _, err := p.take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	first := p.blocks[0]
	tcp, err := net.Listen("tcp", addressOf(first+2))
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close() //nolint:errcheck // nothing was sent
	udp, err := net.ListenPacket("udp", addressOf(first+3))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close() //nolint:errcheck // nothing was sent
	if got, err := p.take(t.Context(), 1); err != nil || got[0] != addressOf(first+4) {
		t.Errorf("got %v, %v, want %s", got, err, addressOf(first+4))
	}
	release(p.locks)
}

// TestProcessesGetDifferentPorts compares the ports of two processes that run at once with each other and with those of
// this one.
func TestProcessesGetDifferentPorts(t *testing.T) {
	owner := map[string]int{}
	for _, address := range FreePorts(t, blockSize) {
		owner[address] = -1
	}
	for process := range 2 {
		command := thisBinary(t, "ports")
		if _, err := command.StdinPipe(); err != nil { // stays open until it is killed
			t.Fatal(err)
		}
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		StartProcess(t, "ports", command)
		line, err := bufio.NewReader(out).ReadString('\n')
		addresses := strings.Fields(line)
		if err != nil || len(addresses) != 2*blockSize+1 {
			t.Fatalf("process %d prints %q, %v", process, line, err)
		}
		for _, address := range addresses[:2*blockSize] {
			if other, taken := owner[address]; taken {
				t.Errorf("%s is of process %d and of process %d", address, other, process)
			}
			owner[address] = process
		}
	}
}

// TestPortsAreReused takes all blocks of a small range and then more ports than they have.
func TestPortsAreReused(t *testing.T) {
	const few = 3
	p, other := ports{lowest: 8_000, count: few}, ports{lowest: 8_000, count: few}
	first, err := p.take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for p.addBlock(t.Context()) {
		continue
	}
	if _, err := other.take(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "use all ports") {
		t.Errorf("without a free block: %v", err)
	}
	p.taken = (blockSize - 1) * len(p.blocks)
	if again, err := p.take(t.Context(), 1); err != nil || again[0] != first[0] {
		t.Errorf("after the last port: %v, %v, want %v", again, err, first)
	}
	if got, err := p.take(t.Context(), few*blockSize); err == nil {
		t.Errorf("more ports than there are: %v", got)
	}
	release(p.locks)
}

func release(locks []net.Listener) {
	for _, lock := range locks {
		_ = lock.Close() // it was only held
	}
}
