package servertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
)

// blockSize is the number of ports that a process takes at once, without the first of them.
const blockSize = 50

// ports hands out ports of blocks that this process alone uses. It listens at the first port of a block for as long as
// the process runs, which is what keeps others from taking the block.
type ports struct {
	lowest, count int // the range: its first port, and the number of blocks

	mu     sync.Mutex
	listen net.ListenConfig
	locks  []net.Listener
	blocks []int // first ports of the blocks of this process
	taken  int   // number of ports taken so far
}

// The range, 16000 to 27999, is above the ports that "quorate server dev" searches, also with --demo, because tests
// start it too, and below those of tools/bench/compare and of outgoing connections: each could take a port between the
// search and its use.
const (
	lowestPort = 16_000
	blockCount = 240
)

var testPorts = ports{lowest: lowestPort, count: blockCount}

// FreePorts returns addresses on loopback that are free for TCP and UDP. No two calls get the same ones, in this
// process or in any other that runs at once, until a process has used up all blocks that no other process has.
func FreePorts(t testing.TB, count int) []string {
	t.Helper()
	addresses, err := testPorts.take(context.Background(), count)
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

func (p *ports) take(ctx context.Context, count int) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	for range p.count * blockSize {
		port, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if address := addressOf(port); !slices.Contains(found, address) && p.isFree(ctx, address) {
			found = append(found, address)
		}
		if len(found) == count {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no %d ports from %d to %d are free", count, p.lowest, p.lowest+p.count*blockSize-1)
}

// next takes a port of the last block, else of a new one, else of the first block again.
func (p *ports) next(ctx context.Context) (int, error) {
	const usable = blockSize - 1
	if p.taken >= usable*len(p.blocks) && !p.addBlock(ctx) {
		if len(p.blocks) == 0 {
			return 0, errors.New("other processes use all ports for tests")
		}
		p.taken = 0
	}
	port := p.blocks[p.taken/usable] + 1 + p.taken%usable
	p.taken++
	return port, nil
}

// addBlock begins at a random port; false if there is none that no process has.
func (p *ports) addBlock(ctx context.Context) bool {
	from := rand.IntN(p.count)
	for i := range p.count {
		first := p.lowest + (from+i)%p.count*blockSize
		lock, err := p.listen.Listen(ctx, "tcp", addressOf(first))
		if err == nil {
			p.locks, p.blocks = append(p.locks, lock), append(p.blocks, first)
			return true
		}
	}
	return false
}

func (p *ports) isFree(ctx context.Context, address string) bool {
	tcp, err := p.listen.Listen(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer tcp.Close() //nolint:errcheck // it was only to see that the port is free
	udp, err := p.listen.ListenPacket(ctx, "udp", address)
	if err != nil {
		return false
	}
	return udp.Close() == nil
}

func addressOf(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
