package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Disk holds the data of a node and can have faults, which may begin and end at any time.
type Disk struct {
	// Dir is the folder as the node sees it. The harness must use Backing, where faults do not apply.
	Dir, Backing string

	limited, faulty bool
	unmounts        []func() error

	slow  atomic.Int64 // delay of each fsync, in nanoseconds
	fails atomic.Bool  // every fsync fails
	full  atomic.Bool  // every write fails; used if the disk has no limited size
	tear  atomic.Bool  // the next write is cut short, and all after it fail
	torn  atomic.Bool
	// hung is closed when fsyncs return again; nil if they do.
	hung atomic.Pointer[chan struct{}]
}

func plainDisk(below string) (*Disk, error) {
	path := filepath.Join(below, "data")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	return &Disk{Dir: path, Backing: path}, nil
}

// Limited reports whether the disk can be full.
func (d *Disk) Limited() bool { return d.limited || d.faulty }

// Faulty reports whether the disk can be slow or fail.
func (d *Disk) Faulty() bool { return d.faulty }

// Slow delays each fsync; 0 ends that.
func (d *Disk) Slow(delay time.Duration) { d.slow.Store(int64(delay)) }

// Hang keeps every fsync from returning until ClearFaults. A process that waits for one cannot be killed before that.
func (d *Disk) Hang() {
	ends := make(chan struct{})
	d.hung.CompareAndSwap(nil, &ends)
}

// FailSyncs makes each fsync fail with EIO, or ends that.
func (d *Disk) FailSyncs(fails bool) { d.fails.Store(fails) }

// Tear makes the next write stop halfway with EIO, and all writes and fsyncs after it fail until ClearFaults.
func (d *Disk) Tear() { d.tear.Store(true) }

// Torn reports whether a write was torn.
func (d *Disk) Torn() bool { return d.torn.Load() }

// ClearFaults ends all faults except a full disk.
func (d *Disk) ClearFaults() {
	d.slow.Store(0)
	if hung := d.hung.Swap(nil); hung != nil {
		close(*hung)
	}
	d.fails.Store(false)
	d.tear.Store(false)
	d.torn.Store(false)
}

// fillerName is the file that fills a disk.
const fillerName = ".chaos-filler"

// Fill takes all free space.
func (d *Disk) Fill() error {
	if !d.limited {
		d.full.Store(true)
		return nil
	}
	file, err := os.OpenFile(filepath.Join(filepath.Dir(d.Backing), fillerName), os.O_CREATE|os.O_WRONLY|os.O_APPEND,
		0o600)
	if err != nil {
		return fmt.Errorf("fill a disk: %w", err)
	}
	defer file.Close() //nolint:errcheck // its content does not matter
	for block := make([]byte, 1<<20); len(block) > 0; {
		switch _, err := file.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/16]
		case err != nil:
			return fmt.Errorf("fill a disk: %w", err)
		}
	}
	return nil
}

// FreeSpace frees the space that Fill took.
func (d *Disk) FreeSpace() error {
	d.full.Store(false)
	if err := os.Remove(filepath.Join(filepath.Dir(d.Backing), fillerName)); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("empty a disk: %w", err)
	}
	return nil
}

// removeContents needs the node to be stopped.
func (d *Disk) removeContents() error {
	entries, err := os.ReadDir(d.Backing)
	if err != nil {
		return fmt.Errorf("wipe a disk: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(d.Backing, e.Name())); err != nil {
			return fmt.Errorf("wipe a disk: %w", err)
		}
	}
	return nil
}

// unmountAll needs the node to be stopped. It works in reverse order.
func (d *Disk) unmountAll() error {
	var failed []error
	for _, undo := range slices.Backward(d.unmounts) {
		failed = append(failed, undo())
	}
	d.unmounts = nil
	return errors.Join(failed...)
}
