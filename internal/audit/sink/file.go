package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/quorate/quorate/internal/audit"
)

// lineWriter takes lines without their newline.
type lineWriter interface {
	WriteLine(line []byte) error
	// Sync returns when what was written survives a crash of the machine.
	Sync() error
	Close() error
}

// discard is the writer of a server without an audit file.
type discard struct{}

func (discard) WriteLine([]byte) error { return nil }
func (discard) Sync() error            { return nil }
func (discard) Close() error           { return nil }

// streamWriter does not close the stream, which is the caller's.
type streamWriter struct{ out io.Writer }

// WriteLine writes the line in one call, because others write to the stream too.
func (w streamWriter) WriteLine(line []byte) error {
	_, err := w.out.Write(append(bytes.Clone(line), '\n'))
	return err
}

func (streamWriter) Sync() error  { return nil }
func (streamWriter) Close() error { return nil }

// rotatedFile is a file that only grows, until it is renamed to PATH.1, PATH.1 to PATH.2 and so on. Rotation is our own
// because a record must be whole in one file and on disk before the next file begins, which the libraries for log files
// do not promise.
type rotatedFile struct {
	path  string
	most  int64
	keep  int
	file  *os.File
	size  int64
	dirty bool
}

// fileMode lets only the owner read records: they tell who does what.
const fileMode = 0o600

type found struct {
	Ledger, Server audit.Head
	Holds          HoldMark
	// countedHolds is true if a record of an allocation of an earlier log entry was found: then Holds has all of its
	// entry, although the records of one entry may be in two files.
	countedHolds bool
}

// isComplete reports whether older files need not be read.
func (f *found) isComplete(findHolds bool) bool {
	return f.Ledger != (audit.Head{}) && f.Server != (audit.Head{}) && (!findHolds || f.countedHolds)
}

func (f *found) addOlder(older found) {
	if f.Ledger == (audit.Head{}) {
		f.Ledger = older.Ledger
	}
	if f.Server == (audit.Head{}) {
		f.Server = older.Server
	}
	switch {
	case f.countedHolds || older.Holds == HoldMark{}:
	case f.Holds == HoldMark{}:
		f.Holds, f.countedHolds = older.Holds, older.countedHolds
	case f.Holds.Index == older.Holds.Index:
		f.Holds.Count += older.Holds.Count
		f.countedHolds = older.countedHolds
	default:
		f.countedHolds = true
	}
}

func (f *found) add(r *audit.Record) {
	head := audit.Head{Number: r.Number, Hash: r.Hash}
	if r.Chain == audit.Ledger {
		f.Ledger = head
		return
	}
	f.Server = head
	switch {
	case r.Kind != audit.Hold:
	case r.Index == f.Holds.Index:
		f.Holds.Count++
	default:
		f.countedHolds = f.Holds != HoldMark{}
		f.Holds = HoldMark{r.Index, 1}
	}
}

// openFile also finds the newest records of both chains, in the file or in rotated ones.
func openFile(path string, most int64, keep int, findHolds bool) (*rotatedFile, found, error) {
	f := &rotatedFile{path: path, most: most, keep: keep}
	newest, err := f.findNewest(findHolds)
	if err != nil {
		return nil, found{}, err
	}
	if err := f.open(); err != nil {
		return nil, found{}, err
	}
	f.file, err = nil, f.file.Close() // it is open only while lines are written, so that a server may fail to start
	return f, newest, err
}

func (f *rotatedFile) open() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if !info.Mode().IsRegular() {
		return errors.Join(errors.New("it is not a regular file"), file.Close())
	}
	if err := file.Chmod(fileMode); err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// findNewest reads older files as long as something was not found.
func (f *rotatedFile) findNewest(findHolds bool) (found, error) {
	var newest found
	for n := 0; n <= f.keep; n++ {
		name := f.rotated(n)
		in, err := scanFile(name, n == 0)
		switch {
		case errors.Is(err, fs.ErrNotExist) && n > 0:
			return newest, nil
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return found{}, fmt.Errorf("%s: %w; move it away to begin a new one", name, err)
		}
		newest.addOlder(in)
		if newest.isComplete(findHolds) {
			break
		}
	}
	return newest, nil
}

// scanFile finds the newest records of a file. It cuts off an incomplete line at the end if it may.
func scanFile(name string, mayCut bool) (found, error) {
	file, err := os.Open(name)
	if err != nil {
		return found{}, err
	}
	defer file.Close() //nolint:errcheck // only read
	var newest found
	size := int64(0)
	err = audit.ReadLines(file, func(number int, line []byte) error {
		r, err := audit.Decode(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		size += int64(len(line)) + 1
		newest.add(&r)
		return nil
	})
	if errors.Is(err, audit.ErrTorn) && mayCut {
		err = os.Truncate(name, size)
	}
	return newest, err
}

func (f *rotatedFile) rotated(n int) string {
	if n == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, n)
}

// WriteLine appends a line, in a new file if the present one would become too large. After an error nothing of the line
// is in the file, as far as the file can still be cut.
func (f *rotatedFile) WriteLine(line []byte) error {
	if f.size > 0 && f.size+int64(len(line))+1 > f.most {
		if err := f.rotate(); err != nil {
			return fmt.Errorf("rotating %s: %w", f.path, err)
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(append(bytes.Clone(line), '\n'))
	if err != nil {
		if n > 0 {
			err = errors.Join(err, f.file.Truncate(f.size))
		}
		return err
	}
	f.size += int64(n)
	f.dirty = true
	return nil
}

// rotate begins with the oldest file, so that at no time two have one name.
func (f *rotatedFile) rotate() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if f.file != nil {
		err := f.file.Close()
		f.file = nil
		if err != nil {
			return err
		}
	}
	if err := os.Remove(f.rotated(f.keep)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for n := f.keep - 1; n >= 0; n-- {
		if err := os.Rename(f.rotated(n), f.rotated(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.size = 0 // if opening fails, the next line must not rotate again
	return f.open()
}

// Sync flushes the file to the disk.
func (f *rotatedFile) Sync() error {
	if !f.dirty || f.file == nil {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.dirty = false
	return nil
}

// Close closes the file.
func (f *rotatedFile) Close() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.Sync(), f.file.Close())
	f.file = nil
	return err
}
