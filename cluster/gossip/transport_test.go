package gossip_test

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// memoryWire is a network in memory. Packets are lost as over UDP: if there is no receiver, if the link is cut, or if
// the receiver's queue is full.
type memoryWire struct {
	mu    sync.Mutex
	ends  map[string]*wireEnd
	split func(from, to string) bool
}

type wireEnd struct {
	wire    *memoryWire
	address *net.TCPAddr
	packets chan *memberlist.Packet
	streams chan net.Conn
	down    chan struct{}
	once    sync.Once
}

const queueLength = 64

var errNoRoute = errors.New("no route")

func newMemoryWire() *memoryWire { return &memoryWire{ends: map[string]*wireEnd{}} }

// newEnd connects a node at 10.0.0.n.
func (w *memoryWire) newEnd(n int) *wireEnd {
	e := &wireEnd{
		wire: w, address: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(n)), Port: 7000},
		packets: make(chan *memberlist.Packet, queueLength), streams: make(chan net.Conn), down: make(chan struct{}),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[e.address.String()] = e
	return e
}

func gossipAddress(n int) string { return "10.0.0." + strconv.Itoa(n) + ":7000" }

// setCut separates two sides from now on; nil heals the network.
func (w *memoryWire) setCut(split func(from, to string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.split = split
}

func (e *wireEnd) reachableEnd(to string) *wireEnd {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	from := e.address.String()
	if e.wire.ends[from] != e || e.wire.split != nil && e.wire.split(from, to) {
		return nil
	}
	return e.wire.ends[to]
}

func (e *wireEnd) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return e.address.IP, e.address.Port, nil
}

func (e *wireEnd) WriteTo(b []byte, to string) (time.Time, error) {
	now := time.Now()
	if peer := e.reachableEnd(to); peer != nil {
		select {
		case peer.packets <- &memberlist.Packet{Buf: bytes.Clone(b), From: e.address, Timestamp: now}:
		default:
		}
	}
	return now, nil
}

func (e *wireEnd) PacketCh() <-chan *memberlist.Packet { return e.packets }

func (e *wireEnd) StreamCh() <-chan net.Conn { return e.streams }

func (e *wireEnd) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	peer := e.reachableEnd(to)
	if peer == nil {
		return nil, errNoRoute
	}
	mine, theirs := net.Pipe()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case peer.streams <- theirs:
		return mine, nil
	case <-timer.C:
	case <-peer.down:
	}
	return nil, errNoRoute
}

func (e *wireEnd) Shutdown() error {
	e.once.Do(func() {
		e.wire.mu.Lock()
		defer e.wire.mu.Unlock()
		if e.wire.ends[e.address.String()] == e {
			delete(e.wire.ends, e.address.String())
		}
		close(e.down)
	})
	return nil
}
