package relay

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
)

const (
	// maxStreamedBody is the largest body of a call that goes over a stream. A larger one would hold up the others.
	maxStreamedBody = 64 << 10
	// openPatience is how long a stream may take to open; calls do not wait for it.
	openPatience = 5 * time.Second
	// reopenAfter is how long calls are relayed on their own after a leader did not open a stream, because it does not
	// answer.
	reopenAfter = 30 * time.Second
)

// CallStreams keeps the stream of calls to the present leader (docs/adr/0079-relayed-calls-share-a-stream.md).
type CallStreams struct {
	open func(ctx context.Context, url string) (messageStream, error)
	// version rises when certificates change; nil in plain text.
	version func() uint64

	mu      sync.Mutex
	current *callStream
	url     string // that current goes to
	made    uint64 // the version that current was made at
	opening bool
	// refused holds until when no stream is opened to a URL again.
	refused map[string]time.Time
	closed  bool
}

// NewCallStreams keeps streams that go over a transport to the listeners for nodes.
func NewCallStreams(p Peers) *CallStreams {
	return &CallStreams{
		version: p.Security.Version, refused: map[string]time.Time{},
		open: func(ctx context.Context, url string) (messageStream, error) {
			client := peerv1connect.NewPeerServiceClient(&http.Client{Transport: p.Transport}, url,
				connect.WithReadMaxBytes(MaxAnswer+maxStreamedMessage),
				connect.WithAcceptCompression("gzip", nil, nil)) // it would only cost time
			return client.RelayCalls(ctx)
		},
	}
}

// streamTo returns nil if there is no stream to the leader.
func (s *CallStreams) streamTo(url string) *callStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && (s.url != url || !s.current.isUsable() || s.isOld()) {
		s.current.retire()
		s.current = nil
	}
	return s.current
}

// prepare opens a stream for the next calls to a leader, which has just answered a call: there is a connection to it.
// It does nothing if there is a stream, or if the leader has refused one lately.
func (s *CallStreams) prepare(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil && !s.opening && !s.closed && time.Now().After(s.refused[url]) {
		s.opening = true
		go s.openTo(url)
	}
}

// isOld reports whether the stream goes over a connection that takes no new calls; mu is held.
func (s *CallStreams) isOld() bool {
	return s.version != nil && (s.version() != s.made || time.Since(s.current.opened) > connectionSpan)
}

func (s *CallStreams) openTo(url string) {
	var version uint64
	if s.version != nil {
		version = s.version()
	}
	opened, err := s.handshake(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = false
	if err != nil {
		clear(s.refused) // of leaders before
		s.refused[url] = time.Now().Add(reopenAfter)
		return
	}
	s.current, s.url, s.made = opened, url, version
	if s.closed {
		opened.cancel()
	}
}

func (s *CallStreams) handshake(url string) (*callStream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := time.AfterFunc(openPatience, cancel)
	stream, err := s.open(ctx, url)
	if err == nil {
		err = stream.Send(&peerv1.RelayCallsRequest{})
	}
	if err == nil {
		_, err = stream.Receive()
	}
	if err != nil || !stop.Stop() {
		cancel()
		return nil, fmt.Errorf("opening a stream of calls: %w", err)
	}
	return startCallStream(stream, cancel, ctx.Done()), nil
}

// Close ends the stream. The calls on it are lost.
func (s *CallStreams) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.current != nil {
		s.current.cancel()
	}
}
