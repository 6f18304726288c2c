package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Recorder records the operations of concurrent clients.
type Recorder struct {
	began time.Time

	mu  sync.Mutex
	ops []Op
	out *bufio.Writer
	err error
}

// NewRecorder starts the clock of a history. It writes JSON lines to out unless that is nil; Flush reports errors.
func NewRecorder(out io.Writer) *Recorder {
	r := &Recorder{began: time.Now()}
	if out != nil {
		r.out = bufio.NewWriter(out)
	}
	return r
}

// Now returns the time since the recorder began, in nanoseconds of the monotonic clock.
func (r *Recorder) Now() int64 { return int64(time.Since(r.began)) }

// Began returns when the recorder began.
func (r *Recorder) Began() time.Time { return r.began }

// Add numbers and keeps an operation that has ended. The caller must not change it afterwards.
func (r *Recorder) Add(o Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Number = int64(len(r.ops)) + 1
	r.ops = append(r.ops, o)
	if r.out == nil || r.err != nil {
		return
	}
	line, err := json.Marshal(o)
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	r.err = err
}

// Flush writes what is buffered, and returns an error unless all operations were written.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	if err := errors.Join(r.err, r.out.Flush()); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// History returns all operations so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Ops: slices.Clone(r.ops)}
}

// Write writes a history to a file, in the format of a Recorder.
func Write(path string, h History) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	out := bufio.NewWriter(file)
	encoder := json.NewEncoder(out)
	for _, o := range h.Ops {
		err = errors.Join(err, encoder.Encode(o))
	}
	if err = errors.Join(err, out.Flush(), file.Close()); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}
