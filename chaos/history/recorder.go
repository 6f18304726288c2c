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

// Recorder collects operations of concurrent clients, and writes them down as they end.
type Recorder struct {
	began time.Time

	mu  sync.Mutex
	ops []Op
	out *bufio.Writer
	err error
}

// NewRecorder begins now. It writes JSON lines to out unless that is nil; Flush says whether that went well.
func NewRecorder(out io.Writer) *Recorder {
	r := &Recorder{began: time.Now()}
	if out != nil {
		r.out = bufio.NewWriter(out)
	}
	return r
}

// Now is the time since the recorder began, in nanoseconds of the monotonic clock.
func (r *Recorder) Now() int64 { return int64(time.Since(r.began)) }

// Began is when the recorder began.
func (r *Recorder) Began() time.Time { return r.began }

// Add numbers an operation that has ended and keeps it. The caller does not change it any more.
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

// Flush writes what is still in memory, and says whether all operations could be written.
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

// History is everything so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Ops: slices.Clone(r.ops)}
}

// Write keeps a whole history in a file, as a Recorder would have written it.
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
