package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
)

// readBackup also checks the free disk space meanwhile.
func (r *restorer) readBackup(file io.Reader, size int64, state io.Writer) (backup.Contents, error) {
	from := &countingReader{Reader: io.LimitReader(file, MaxBackupBytes+1)}
	to := &spaceCheckingWriter{Writer: state, checkSpace: func(written int64) *Error {
		whole := max(size, written) // the rest of the file, and its copies in the log and in a snapshot
		return r.disk.checkRestoreSpace(whole - written + (restoreCopies-1)*whole)
	}}
	contents, err := backup.Read(from, fsm.Options{Bounds: r.bounds, Formats: r.formats}, to)
	if err == nil {
		err = from.checkEnd(size)
	}
	switch {
	case to.full != nil:
		return backup.Contents{}, to.full
	case err != nil:
		return backup.Contents{}, newError(Damaged, true, err, "the backup cannot be restored, and nothing was changed")
	}
	return contents, nil
}

// checkLevel returns an error if a restore would raise the feature level without permission, because the cluster
// could not go back to an older version afterwards.
func (r *restorer) checkLevel(needed uint32, mayRaise bool) *Error {
	now := r.ledger.Format()
	if mayRaise || needed <= now {
		return nil
	}
	return newError(Unsafe, true, nil, "the cluster is at feature level %d and this restore needs level %d, from which "+
		"on no older version can take part; raise it first (`quorate level raise`), or confirm that with "+
		"--raise-level; nothing was changed", now, needed)
}

// restoreCopies is how many copies of a backup's content are on the leader's disk for a while: the file, the log and a
// snapshot.
const restoreCopies = 3

// createScratchFile creates a file that is deleted when it is closed or when the process ends.
func (r *restorer) createScratchFile() (*os.File, error) {
	file, err := os.CreateTemp(r.dataDir, "restore-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

type countingReader struct {
	io.Reader
	count int64
}

// Read reads and counts.
func (r *countingReader) Read(data []byte) (int, error) {
	count, err := r.Reader.Read(data)
	r.count += int64(count)
	return count, err
}

// checkEnd returns an error unless the file ends here and has the announced size.
func (r *countingReader) checkEnd(size int64) error {
	if count, err := io.CopyN(io.Discard, r, 1); count > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("there is data after its end, at byte %d", r.count), err)
	}
	if size > 0 && r.count != size {
		return fmt.Errorf("%d bytes were announced, but %d were received", size, r.count)
	}
	return nil
}

// spaceCheckBytes is the number of bytes after which a spaceCheckingWriter checks the free space again.
const spaceCheckBytes = 8 * mebibyte

// spaceCheckingWriter checks the free space periodically while it writes.
type spaceCheckingWriter struct {
	io.Writer
	checkSpace    func(written int64) *Error
	written, next int64
	full          *Error
}

// Write checks the free space when it is due, then writes.
func (w *spaceCheckingWriter) Write(data []byte) (int, error) {
	if w.written >= w.next {
		if w.full = w.checkSpace(w.written); w.full != nil {
			return 0, w.full
		}
		w.next = w.written + spaceCheckBytes
	}
	count, err := w.Writer.Write(data)
	w.written += int64(count)
	return count, err
}
