// Package backup defines the file format of backups of a cluster's state.
//
// A file is a magic line, a manifest, the snapshot in blocks, and a footer. The snapshot has the format that raft uses
// (package fsm); manifest and footer identify its origin and prove that it is complete:
//
//	"quorate-backup 1\n"
//	length (4 bytes, big endian), manifest as JSON
//	length, block of the snapshot      1 byte to 1 MiB each
//	...
//	length 0
//	length, footer as JSON             size and SHA-256 of everything before it
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/quorate/quorate/fsm"
)

const (
	// Format is the only format of files so far.
	Format = 1

	magic     = "quorate-backup "
	firstLine = magic + "1\n"
	// formerMagic is how the files of development builds begin, before the first release.
	formerMagic = "quorate backup "
	maxBlock    = 1 << 20
	maxText     = 1 << 16
	// Overhead bounds the size of a file beyond that of its snapshot, besides a thousandth of it.
	Overhead = 1 << 18
)

// Manifest describes a backup.
type Manifest struct {
	// Cluster and Node are the origin; Version is that node's software.
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	Version string `json:"version"`
	// Term is the raft term of the backup; TakenMs is the wall clock.
	Term    uint64 `json:"term"`
	TakenMs int64  `json:"taken_ms"`
	// Stale is true if the node did not confirm with the leader that its state was current.
	Stale bool `json:"stale,omitempty"`
	fsm.Info
}

// Sum is the footer of a file.
type Sum struct {
	// Size and SHA256 cover everything before the footer.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Contents describes a file that Read has verified.
type Contents struct {
	Manifest
	Sum

	// SnapshotBytes is the size of the snapshot in the file.
	SnapshotBytes int64 `json:"snapshot_bytes"`
	// SnapshotSHA256 is the digest of the snapshot.
	SnapshotSHA256 []byte `json:"-"`
}

// Write writes a file with the given state. It fills in the fields of the manifest that the state determines.
func Write(out io.Writer, m Manifest, state fsm.StateSnapshot) (Sum, error) {
	w := &writer{out: out, digest: sha256.New()}
	m.Info = state.Info()
	if err := w.writeHeader(m); err != nil {
		return Sum{}, fmt.Errorf("write backup: %w", err)
	}
	err := state.Write(w)
	if err == nil {
		err = w.endBlocks()
	}
	if err != nil {
		return Sum{}, fmt.Errorf("write backup: %w", err)
	}
	sum := w.fileSum()
	if err := w.writeJSON(sum); err != nil {
		return Sum{}, fmt.Errorf("write backup: %w", err)
	}
	return sum, nil
}

type writer struct {
	out    io.Writer
	digest hash.Hash
	size   int64
	block  []byte
}

func (w *writer) writeRaw(data []byte) error {
	w.digest.Write(data)
	w.size += int64(len(data))
	_, err := w.out.Write(data)
	return err
}

func (w *writer) writeJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.writeRaw(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
}

func (w *writer) writeHeader(m Manifest) error {
	return errors.Join(w.writeRaw([]byte(firstLine)), w.writeJSON(m))
}

// Write collects bytes of the snapshot into blocks.
func (w *writer) Write(data []byte) (int, error) {
	written := len(data)
	for len(data) > 0 {
		n := min(len(data), maxBlock-len(w.block))
		w.block = append(w.block, data[:n]...)
		data = data[n:]
		if len(w.block) == maxBlock {
			if err := w.flushBlock(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (w *writer) flushBlock() error {
	if len(w.block) == 0 {
		return nil
	}
	err := w.writeRaw(append(binary.BigEndian.AppendUint32(nil, uint32(len(w.block))), w.block...))
	w.block = w.block[:0]
	return err
}

func (w *writer) endBlocks() error {
	if err := w.flushBlock(); err != nil {
		return err
	}
	return w.writeRaw([]byte{0, 0, 0, 0})
}

func (w *writer) fileSum() Sum {
	return Sum{Size: w.size, SHA256: hex.EncodeToString(w.digest.Sum(nil))}
}

// Read reads a file to its end and verifies all of it: the frame, the digests, the snapshot as a restore would, and
// that manifest and footer match the content. Unless state is nil, Read writes the snapshot to it; that copy is valid
// only if Read returns no error. The options are those of the state machine that the state is for.
func Read(in io.Reader, o fsm.Options, state io.Writer) (Contents, error) {
	if state == nil {
		state = io.Discard
	}
	r := &reader{in: in, digest: sha256.New()}
	manifest, err := r.readManifest(o.Formats.Newest())
	if err != nil {
		return Contents{}, err
	}
	own := &countingWriter{digest: sha256.New(), out: state}
	info, err := fsm.ReadSnapshot(io.TeeReader(r, own), o)
	if err != nil {
		return Contents{}, r.explainFailure(err)
	}
	if manifest.Info != info {
		return Contents{}, errors.New("the manifest does not say what is in the snapshot: the file was damaged")
	}
	sum, err := r.readFooter()
	if err != nil {
		return Contents{}, err
	}
	return Contents{Manifest: manifest, Sum: sum, SnapshotBytes: own.size, SnapshotSHA256: own.digest.Sum(nil)}, nil
}

type countingWriter struct {
	out    io.Writer
	digest hash.Hash
	size   int64
}

// Write counts and forwards data.
func (t *countingWriter) Write(data []byte) (int, error) {
	t.digest.Write(data)
	t.size += int64(len(data))
	return t.out.Write(data)
}

// reader reads no byte beyond the end of the file format.
type reader struct {
	in     io.Reader
	digest hash.Hash
	size   int64
	left   int
	ended  bool
	failed error
}

var errShort = errors.New("the file ends too early: it was cut off")

func (r *reader) readRaw(data []byte) error {
	if _, err := io.ReadFull(r.in, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errShort
		}
		return fmt.Errorf("read backup: %w", err)
	}
	r.digest.Write(data)
	r.size += int64(len(data))
	return nil
}

func (r *reader) readLength(most uint32, what string) (int, error) {
	var head [4]byte
	if err := r.readRaw(head[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return 0, fmt.Errorf("the %s has %d bytes, but at most %d are possible: the file was damaged", what, n, most)
	}
	return int(n), nil
}

// readJSON reads one text and refuses any byte that a writer would not have written.
func (r *reader) readJSON(v any, what string) error {
	n, err := r.readLength(maxText, what)
	if err != nil {
		return err
	}
	text := make([]byte, n)
	if err := r.readRaw(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the %s cannot be read: the file was damaged: %w", what, err)
	}
	if again, err := json.Marshal(v); err != nil || !bytes.Equal(again, text) {
		return fmt.Errorf("the %s is not what a server writes: the file was damaged, or a newer version wrote it", what)
	}
	return nil
}

func (r *reader) readManifest(newest uint32) (Manifest, error) {
	line := make([]byte, len(firstLine))
	if err := r.readRaw(line); err != nil {
		return Manifest{}, err
	}
	switch {
	case strings.HasPrefix(string(line), formerMagic):
		return Manifest{}, fmt.Errorf("the backup cannot be read: %w", fsm.ErrDevelopmentBuild)
	case !strings.HasPrefix(string(line), magic):
		return Manifest{}, fmt.Errorf("this is not a backup: it does not begin with %q", magic)
	case string(line) != firstLine:
		return Manifest{}, fmt.Errorf(
			"the file has another format than %d, which this version understands: run a newer version", Format)
	}
	var m Manifest
	err := r.readJSON(&m, "manifest")
	if m.Format > newest {
		return m, fmt.Errorf("it needs feature level %d, but this version has %d: run version %s or a newer one",
			m.Format, newest, m.Version)
	}
	return m, err
}

// Read returns bytes of the snapshot.
func (r *reader) Read(data []byte) (int, error) {
	if r.left == 0 && !r.ended {
		if r.left, r.failed = r.readLength(maxBlock, "block"); r.failed != nil {
			return 0, r.failed
		}
		r.ended = r.left == 0
	}
	if r.ended {
		return 0, io.EOF
	}
	n := min(len(data), r.left)
	if r.failed = r.readRaw(data[:n]); r.failed != nil {
		return 0, r.failed
	}
	r.left -= n
	return n, nil
}

// explainFailure distinguishes a damaged file from a snapshot that was invalid when it was written, after reading the
// snapshot failed.
func (r *reader) explainFailure(err error) error {
	if r.failed != nil {
		return r.failed
	}
	_, broken := io.Copy(io.Discard, r)
	if broken == nil {
		_, broken = r.readFooter()
	}
	if broken != nil {
		return fmt.Errorf("%w (%w)", broken, err)
	}
	return err
}

func (r *reader) readFooter() (Sum, error) {
	if !r.ended {
		return Sum{}, errors.New("something follows the snapshot: the file was damaged")
	}
	want := Sum{Size: r.size, SHA256: hex.EncodeToString(r.digest.Sum(nil))}
	var got Sum
	if err := r.readJSON(&got, "footer"); err != nil {
		return Sum{}, err
	}
	if got != want {
		return Sum{}, fmt.Errorf(
			"the file has %d bytes with SHA-256 %s, but its footer says %d bytes with %s: it was damaged",
			want.Size, want.SHA256, got.Size, got.SHA256)
	}
	if n, err := r.in.Read(make([]byte, 1)); n > 0 || err == nil {
		return Sum{}, errors.New("something follows the end of the backup: the file was damaged")
	}
	return want, nil
}
