package gossip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
)

const (
	// maxStreams bounds the open incoming streams; memberlist gives each of them two seconds.
	maxStreams = 32
	// refusalInterval is the minimum time between two log messages about refusals.
	refusalInterval = 10 * time.Second
)

// checkedTransport passes to memberlist only what members could have sent. memberlist inflates a message before it
// looks at it, even if compression is disabled, so everything is checked before memberlist gets it.
type checkedTransport struct {
	memberlist.Transport

	keys     *Keyring // nil if gossip is plain text
	refusals *refusalLog
	packets  chan *memberlist.Packet
	streams  chan net.Conn
	open     chan struct{} // one element per open incoming stream
	closing  chan struct{} // closed when memberlist stops listening
	done     chan struct{} // closed when the wrapped transport has stopped
	once     sync.Once
	running  sync.WaitGroup
}

func newCheckedTransport(below memberlist.Transport, keys *Keyring, log hclog.Logger) *checkedTransport {
	t := &checkedTransport{
		Transport: below, keys: keys, refusals: &refusalLog{log: log},
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), open: make(chan struct{}, maxStreams),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	t.running.Go(t.receiveLoop)
	return t
}

func (t *checkedTransport) currentKeys() acceptedKeys {
	if t.keys == nil {
		return acceptedKeys{}
	}
	return acceptedKeys{t.keys.Keys(), t.keys.acceptsPlain}
}

// PacketCh returns the channel of accepted datagrams.
func (t *checkedTransport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh returns the channel of incoming streams, which are checked when they are read.
func (t *checkedTransport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout connects to another node, whose answer is checked when it is read.
func (t *checkedTransport) DialTimeout(address string, timeout time.Duration) (net.Conn, error) {
	c, err := t.Transport.DialTimeout(address, timeout)
	if err != nil {
		return nil, err
	}
	return &checkedStream{Conn: c, transport: t, end: func() {}}, nil
}

// Shutdown stops listening.
func (t *checkedTransport) Shutdown() error {
	var err error
	t.once.Do(func() {
		close(t.closing)
		err = t.Transport.Shutdown() // it waits until all received packets were consumed
		close(t.done)
		t.running.Wait()
	})
	return err
}

func (t *checkedTransport) receiveLoop() {
	for {
		select {
		case p := <-t.Transport.PacketCh():
			t.receivePacket(p)
		case c := <-t.Transport.StreamCh():
			t.receiveStream(c)
		case <-t.done:
			return
		}
	}
}

func (t *checkedTransport) receivePacket(p *memberlist.Packet) {
	if err := checkPacket(p.Buf, t.currentKeys()); err != nil {
		t.refusals.logRefusal("a datagram", p.From, err)
		return
	}
	p.Buf = bytes.Clone(p.Buf) // memberlist reads each into 64 KiB, and may keep it for long
	select {
	case t.packets <- p:
	case <-t.closing:
	}
}

func (t *checkedTransport) receiveStream(c net.Conn) {
	select {
	case t.open <- struct{}{}:
	default:
		t.refusals.logRefusal("a stream", c.RemoteAddr(), fmt.Errorf("%d others are open already", maxStreams))
		_ = c.Close() // the connection is refused
		return
	}
	checked := &checkedStream{Conn: c, transport: t, end: sync.OnceFunc(func() { <-t.open })}
	select {
	case t.streams <- checked:
	case <-t.closing:
		_ = checked.Close() // memberlist no longer listens
	}
}

// checkedStream is a stream from which memberlist reads one message. The whole message is received and checked before
// memberlist gets its first byte.
type checkedStream struct {
	net.Conn

	transport *checkedTransport
	end       func()
	received  bool
	rest      []byte
	failure   error
}

// Read returns the message once it was accepted, and nothing that follows it.
func (s *checkedStream) Read(p []byte) (int, error) {
	if !s.received {
		s.received = true
		s.rest, s.failure = s.receiveMessage()
		if s.failure != nil {
			s.transport.refusals.logStreamRefusal(s.RemoteAddr(), s.failure)
		}
	}
	switch {
	case s.failure != nil:
		return 0, s.failure
	case len(s.rest) > 0:
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return 0, io.EOF
}

// Close closes the stream.
func (s *checkedStream) Close() error {
	s.end()
	return s.Conn.Close()
}

func (s *checkedStream) receiveMessage() ([]byte, error) {
	from := &streamSource{from: s.Conn, left: maxState}
	accepts := s.transport.currentKeys()
	kind, err := from.readBytes(1)
	switch {
	case err != nil:
		return nil, err
	case len(accepts.keys) == 0, accepts.plain && kind[0] != encryptedMessage:
		err := checkState(kind[0], from)
		return from.kept, err
	case kind[0] != encryptedMessage:
		return nil, errEncryption
	}
	sizes, err := from.readBytes(4)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(sizes)
	if size > maxState {
		return nil, errEncryption
	}
	head := bytes.Clone(from.kept)
	secret, err := from.readBytes(int(size))
	if err != nil {
		return nil, err
	}
	plain, err := decryptMessage(secret, head, accepts.keys)
	if err != nil {
		return nil, err
	}
	if len(plain) == 0 {
		return nil, errEmpty
	}
	return from.kept, checkState(plain[0], &memorySource{plain[1:]})
}

type refusalLog struct {
	log hclog.Logger

	mu         sync.Mutex
	reported   time.Time
	suppressed int
}

// logRefusal logs at most once per refusalInterval.
func (r *refusalLog) logRefusal(what string, from net.Addr, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.reported) < refusalInterval {
		r.suppressed++
		return
	}
	r.log.Warn("refused a message that no member sends", "what", what, "from", from, "reason", reason, "others-before",
		r.suppressed)
	r.reported, r.suppressed = time.Now(), 0
}

// logStreamRefusal logs a refused stream, unless it was only interrupted or timed out.
func (r *refusalLog) logStreamRefusal(from net.Addr, reason error) {
	var broken net.Error
	if errors.As(reason, &broken) || errors.Is(reason, io.EOF) || errors.Is(reason, io.ErrUnexpectedEOF) {
		return
	}
	r.logRefusal("a stream", from, reason)
}
