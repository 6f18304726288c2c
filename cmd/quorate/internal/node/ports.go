//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free ports are searched below the ephemeral range, because an outgoing connection could take a port of that range
// between the search and its use.
const (
	lowestPort  = 10_000
	highestPort = 16_000
	portTries   = 1_000
)

// FreePorts finds addresses on loopback that are free for TCP and UDP both.
func FreePorts(ctx context.Context, count int) (addresses []string, err error) {
	var listen net.ListenConfig
	var held []interface{ Close() error }
	defer func() {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
	}()
	for range portTries {
		if len(addresses) == count {
			return addresses, nil
		}
		address := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(highestPort-lowestPort))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tcp, err := listen.Listen(ctx, "tcp", address)
		if err != nil {
			continue
		}
		held = append(held, tcp)
		udp, err := listen.ListenPacket(ctx, "udp", address)
		if err != nil {
			continue
		}
		held = append(held, udp)
		addresses = append(addresses, address)
	}
	return nil, fmt.Errorf("no %d ports between %d and %d of 127.0.0.1 are free", count, lowestPort, highestPort)
}
