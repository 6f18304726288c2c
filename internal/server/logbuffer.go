package server

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

const (
	// bufferedLines is how many lines of the log are kept for diagnostics.
	bufferedLines = 2000
	// bufferedBytes bounds them together, because they must fit into one diagnostic.
	bufferedBytes = 500 << 10
)

// logBuffer keeps the last lines of the log. It is a writer, to be put beside the one that people read.
type logBuffer struct {
	mu    sync.Mutex
	lines [][]byte
	bytes int
}

var _ io.Writer = (*logBuffer)(nil)

// Write keeps one entry of the log, which the logger writes in one piece. It never fails.
func (l *logBuffer) Write(p []byte) (int, error) {
	line := bytes.Clone(p[:min(len(p), bufferedBytes)])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.bytes += len(line)
	for len(l.lines) > bufferedLines || l.bytes > bufferedBytes {
		l.bytes -= len(l.lines[0])
		l.lines[0] = nil
		l.lines = l.lines[1:]
	}
	return len(p), nil
}

// contents has the oldest first.
func (l *logBuffer) contents() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Join(l.lines, nil)
}

// redacted is an error if the log is not kept.
func (l *logBuffer) redacted() ([]byte, error) {
	if l == nil {
		return nil, errors.New("this process does not keep its log")
	}
	return []byte(redactURLs(string(l.contents()))), nil
}
