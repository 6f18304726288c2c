package main

import (
	"bytes"
	"io"
	"sync"
)

const (
	// latelyLines is how many lines of the log a process remembers, for those who look for a fault.
	latelyLines = 2000
	// latelyBytes bounds them together, so that they fit into one diagnostic.
	latelyBytes = 500 << 10
)

// lately remembers the last lines of the log. It is a writer, to be put beside the one that people read.
type lately struct {
	mu    sync.Mutex
	lines [][]byte
	bytes int
}

var _ io.Writer = (*lately)(nil)

// Write remembers one piece of the log, which the logger writes in one go. It never fails.
func (l *lately) Write(p []byte) (int, error) {
	line := bytes.Clone(p[:min(len(p), latelyBytes)])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.bytes += len(line)
	for len(l.lines) > latelyLines || l.bytes > latelyBytes {
		l.bytes -= len(l.lines[0])
		l.lines[0] = nil
		l.lines = l.lines[1:]
	}
	return len(p), nil
}

// text is what is remembered, oldest first.
func (l *lately) text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Join(l.lines, nil)
}
