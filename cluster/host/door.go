package host

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// handshakeTimeout bounds how long a stranger may take to prove that it is a node.
	handshakeTimeout = 10 * time.Second
	// mostHandshakes bounds how many do so at once; more are turned away.
	mostHandshakes = 256
	// complainEvery is how often the log says that somebody was turned away.
	complainEvery = 10 * time.Second
)

// door is a listener that gives out only connections whose other side has proved to be a node. Raft itself would take the
// time of a handshake for that of a message.
type door struct {
	net.Listener
	config *tls.Config
	open   *connections
	log    hclog.Logger
	proved chan net.Conn
	busy   chan struct{}

	ctx   context.Context //nolint:containedctx // it is the life of the door
	close context.CancelFunc

	mu         sync.Mutex
	complained time.Time
	unsaid     int
}

func newDoor(l net.Listener, config *tls.Config, open *connections, log hclog.Logger) *door {
	d := &door{
		Listener: l, config: config, open: open, log: log, proved: make(chan net.Conn), busy: make(chan struct{}, mostHandshakes),
	}
	d.ctx, d.close = context.WithCancel(context.Background())
	go d.run()
	return d
}

// Accept returns the next connection of a node.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.proved:
		return c, nil
	case <-d.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends Accept and every handshake.
func (d *door) Close() error {
	d.close()
	return d.Listener.Close()
}

func (d *door) run() {
	for {
		c, err := d.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			d.close()
			return
		case err != nil: // out of file descriptors, perhaps; that passes
			d.complain(nil, err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-d.ctx.Done():
			}
			continue
		}
		select {
		case d.busy <- struct{}{}:
			go d.prove(c)
		default:
			d.complain(c, errors.New("too many are at the door"))
			_ = c.Close() // it was turned away
		}
	}
}

func (d *door) prove(plain net.Conn) {
	defer func() { <-d.busy }()
	ctx, cancel := context.WithTimeout(d.ctx, handshakeTimeout)
	defer cancel()
	version, secured := d.open.version(), tls.Server(plain, d.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		d.complain(plain, err)
		_ = plain.Close() // it was turned away
		return
	}
	c := d.open.add(secured, version)
	select {
	case d.proved <- c:
	case <-d.ctx.Done():
		_ = c.Close() // nobody waits for it any more
	}
}

// complain says who was turned away, not too often.
func (d *door) complain(c net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.ctx.Err() == nil && now.Sub(d.complained) >= complainEvery {
		from := ""
		if c != nil {
			from = c.RemoteAddr().String()
		}
		d.log.Warn("turned away who is no node of this cluster", "from", from, "reason", err, "others-before", d.unsaid)
		d.complained, d.unsaid = now, 0
		return
	}
	d.unsaid++
}
