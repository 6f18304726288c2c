package simnet

import (
	"io"
	"sync"
)

// chunk is the size of the pieces in which a snapshot is sent.
const chunk = 64 << 10

// snapshotStream sends the content of a snapshot over one link, chunk by chunk, each of which can be lost.
type snapshotStream struct {
	net    *Network
	way    link
	source io.Reader
	reader *io.PipeReader
	writer *io.PipeWriter

	mu      sync.Mutex
	stopped bool
	copied  chan struct{} // closed when source is no longer read; nil before start
}

func newStream(n *Network, way link, source io.Reader) *snapshotStream {
	reader, writer := io.Pipe()
	return &snapshotStream{net: n, way: way, source: source, reader: reader, writer: writer}
}

// start starts to copy and returns the receiver's end.
func (s *snapshotStream) start() io.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.writer.CloseWithError(errLost)
		return s.reader
	}
	s.copied = make(chan struct{})
	if !s.net.startCarrier(s.copyChunks) {
		close(s.copied)
		s.writer.CloseWithError(errClosed)
	}
	return s.reader
}

func (s *snapshotStream) copyChunks() {
	defer close(s.copied)
	for {
		if err := s.net.checkArrival(s.way); err != nil {
			s.writer.CloseWithError(err)
			return
		}
		if _, err := io.CopyN(s.writer, s.source, chunk); err != nil {
			s.writer.CloseWithError(err) // io.EOF at the end, which ends the reader as it should
			return
		}
	}
}

// stop ends the stream and waits until source is no longer read, because the caller is about to close it.
func (s *snapshotStream) stop() {
	s.mu.Lock()
	s.stopped = true
	copied := s.copied
	s.mu.Unlock()
	s.reader.CloseWithError(errLost)
	if copied != nil {
		<-copied
	}
}
