package walstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/walstore"
)

const segmentBytes = 8 << 10

type testLog struct {
	*walstore.Store

	t      *testing.T
	folder string
	state  *boltstore.Store
	log    raft.LogStore
}

func newLog(t *testing.T) *testLog {
	t.Helper()
	l := &testLog{t: t, folder: t.TempDir()}
	l.openState()
	l.must(walstore.Create(l.config()))
	l.must(l.open())
	return l
}

func (l *testLog) config() walstore.Config {
	return walstore.Config{Folder: filepath.Join(l.folder, "wal"), State: l.state, SegmentBytes: segmentBytes}
}

func (l *testLog) openState() {
	l.t.Helper()
	state, err := boltstore.Open(filepath.Join(l.folder, "raft.db"), 0)
	l.must(err)
	l.state = state
	l.t.Cleanup(func() { _ = state.Close() })
}

func (l *testLog) open() error {
	store, err := walstore.Open(l.config())
	if err == nil {
		l.Store, l.log = store, raftguard.NewChecksum(store)
		l.t.Cleanup(func() { _ = store.Close() })
	}
	return err
}

func (l *testLog) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// appendBatches appends batches of three entries, and waits for a rotation that follows.
func (l *testLog) appendBatches(count int) {
	l.t.Helper()
	_, last := l.bounds()
	for range count {
		var batch []*raft.Log
		for range 3 {
			last++
			batch = append(batch, &raft.Log{Index: last, Term: 1, Data: bytes.Repeat([]byte{byte(last)}, 150)})
		}
		l.must(l.log.StoreLogs(batch))
	}
	l.must(l.DeleteRange(0, 0)) // deletes nothing, after the rotation in the background
}

func (l *testLog) bounds() (first, last uint64) {
	l.t.Helper()
	first, err1 := l.FirstIndex()
	last, err2 := l.LastIndex()
	l.must(errors.Join(err1, err2))
	return first, last
}

// kill leaves the files as a killed process does: nothing is synced or recorded on the way out.
func (l *testLog) kill() {
	l.t.Helper()
	files := l.read()
	l.must(errors.Join(l.Close(), l.state.Close()))
	for path, data := range files {
		l.must(os.WriteFile(path, data, 0o600))
	}
	l.openState()
}

func (l *testLog) read() map[string][]byte {
	l.t.Helper()
	files := map[string][]byte{}
	for _, path := range l.glob("*") {
		data, err := os.ReadFile(path)
		l.must(err)
		files[path] = data
	}
	return files
}

func (l *testLog) glob(pattern string) []string {
	l.t.Helper()
	paths, err := filepath.Glob(filepath.Join(l.folder, "wal", pattern))
	l.must(err)
	return paths
}

// tail returns the path and the content of the last segment, and where its content ends.
func (l *testLog) tail() (path string, data []byte, end int) {
	l.t.Helper()
	segments := l.glob("*.wal")
	path = segments[len(segments)-1]
	data, err := os.ReadFile(path)
	l.must(err)
	return path, data, len(bytes.TrimRight(data, "\x00"))
}

func (l *testLog) markPath() string { return filepath.Join(l.folder, "wal", "acknowledged") }

// wantCorrupt requires that the log is refused with an error that names a file.
func (l *testLog) wantCorrupt(file string) {
	l.t.Helper()
	err := l.open()
	var corrupt *walstore.CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(corrupt.Error(), file) ||
		!strings.Contains(corrupt.Error(), "join again") {
		l.t.Fatalf("opening returns %v, want a CorruptError about %s that says what to do", err, file)
	}
}

// TestATornWriteIsDropped interrupts the last append at every kind of place: a prefix of it, or some of its sectors,
// are on the disk, and the mark is still that of the append before.
func TestATornWriteIsDropped(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		l := newLog(t)
		l.appendBatches(1 + round%9)
		_, want := l.bounds()
		before := l.read()
		l.appendBatches(1)
		path, after, end := l.tail()
		l.kill()
		old := before[path]
		if old == nil {
			old = make([]byte, len(after)) // the append began a segment
		}
		begin := len(bytes.TrimRight(old, "\x00"))
		torn := bytes.Clone(after)
		if round%2 == 0 {
			clear(torn[begin+random.IntN(end-begin-1):])
			copy(torn, old[:begin])
		} else {
			at := begin + random.IntN(end-begin-1)
			clear(torn[at:min(at+64, end)])
		}
		l.must(os.WriteFile(path, torn, 0o600))
		l.must(os.WriteFile(l.markPath(), before[l.markPath()], 0o600))
		l.must(l.open())
		if _, last := l.bounds(); last != want {
			t.Fatalf("round %d: the log reaches to entry %d, want %d", round, last, want)
		}
		if _, data, end := l.tail(); end > begin && path == l.glob("*.wal")[len(l.glob("*.wal"))-1] {
			t.Fatalf("round %d: %d bytes of the torn write are left", round, len(data)-begin)
		}
		l.appendBatches(5)
		l.must(raftguard.VerifyLog(l.log, 0))
		l.must(l.Close())
		l.must(l.open())
		if _, last := l.bounds(); last != want+15 {
			t.Fatalf("round %d: after five more batches the log reaches to entry %d, want %d", round, last, want+15)
		}
	}
}

// TestAnAcknowledgedEntryIsNeverDropped damages the last append of a process that was killed after it had returned. The
// file looks like that of an interrupted write; raft-wal would drop the entries.
func TestAnAcknowledgedEntryIsNeverDropped(t *testing.T) {
	for name, damage := range map[string]func(data []byte, end int) []byte{
		"a flipped bit":  func(data []byte, end int) []byte { data[end-30] ^= 1; return data },
		"no commit":      func(data []byte, end int) []byte { clear(data[end-8:]); return data },
		"a zeroed batch": func(data []byte, end int) []byte { clear(data[end-400:]); return data },
		"a cut off file": func(data []byte, end int) []byte { return data[:end-20] },
		"an empty file":  func([]byte, int) []byte { return nil },
		"a zeroed file":  func(data []byte, _ int) []byte { clear(data); return data },
	} {
		for _, stop := range []string{"killed", "closed"} {
			t.Run(name+" after it was "+stop, func(t *testing.T) {
				l := newLog(t)
				l.appendBatches(3)
				path, data, end := l.tail()
				if stop == "killed" {
					l.kill()
				} else {
					l.must(l.Close())
				}
				l.must(os.WriteFile(path, damage(data, end), 0o600))
				l.wantCorrupt(filepath.Base(path))
			})
		}
	}
}

// TestDamageBeforeALaterAppendIsFoundWithoutTheMark damages an append that others follow, on a machine that lost its
// power and with it the last values of the mark.
func TestDamageBeforeALaterAppendIsFoundWithoutTheMark(t *testing.T) {
	for offset := 40; offset < 1800; offset += 61 {
		l := newLog(t)
		first := l.read()[l.markPath()]
		l.appendBatches(5)
		path, data, _ := l.tail()
		l.kill()
		data[offset] ^= 0x10
		l.must(os.WriteFile(path, data, 0o600))
		l.must(os.WriteFile(l.markPath(), first, 0o600))
		l.wantCorrupt(filepath.Base(path))
	}
}

// TestAMissingFileIsFound removes one file of the log.
func TestAMissingFileIsFound(t *testing.T) {
	l := newLog(t)
	l.appendBatches(40)
	l.must(l.Close())
	if len(l.glob("*.wal")) < 3 {
		t.Fatalf("there are only the segments %v", l.glob("*.wal"))
	}
	for _, path := range l.glob("*") {
		data, err := os.ReadFile(path)
		l.must(err)
		l.must(os.Remove(path))
		l.wantCorrupt(filepath.Base(path))
		l.must(os.WriteFile(path, data, 0o600))
	}
	l.must(l.open())
}

// TestAnyFlippedBitIsFoundOrHarmless flips single bits all over the log: it is refused, or exactly what was written is
// read.
func TestAnyFlippedBitIsFoundOrHarmless(t *testing.T) {
	l := newLog(t)
	l.appendBatches(40)
	l.must(l.log.DeleteRange(1, 30))
	l.must(l.Close())
	random := rand.New(rand.NewPCG(3, 4))
	refused, harmless := 0, 0
	for range 400 {
		paths := l.glob("*")
		path := paths[random.IntN(len(paths))]
		data, err := os.ReadFile(path)
		l.must(err)
		damaged := bytes.Clone(data)
		damaged[random.IntN(len(data))] ^= 1 << random.IntN(8)
		l.must(os.WriteFile(path, damaged, 0o600))
		if err := l.openAndVerify(); err != nil {
			refused++
		} else {
			harmless++
		}
		l.must(os.WriteFile(path, data, 0o600))
	}
	t.Logf("%d refused, %d harmless", refused, harmless)
	if refused < 50 || harmless == 0 {
		t.Errorf("%d refused and %d harmless: the sample shows nothing", refused, harmless)
	}
}

func (l *testLog) openAndVerify() error {
	l.t.Helper()
	if err := l.open(); err != nil {
		return err
	}
	defer func() { l.must(l.Close()) }()
	if err := raftguard.VerifyLog(l.log, 30); err != nil {
		return err
	}
	if first, last := l.bounds(); first != 31 || last != 120 {
		l.t.Errorf("the log reaches from %d to %d, want 31 to 120", first, last)
	}
	for i := uint64(31); i <= 120; i++ {
		var e raft.Log
		if err := l.log.GetLog(i, &e); err != nil || !bytes.Equal(e.Data, bytes.Repeat([]byte{byte(i)}, 150)) {
			l.t.Errorf("entry %d: %v", i, err)
		}
	}
	return nil
}

// TestACrashBetweenTheLastWriteAndTheRotation leaves a complete segment that is still the last one.
func TestACrashBetweenTheLastWriteAndTheRotation(t *testing.T) {
	l := newLog(t)
	for len(l.glob("*.wal")) == 1 {
		before, err := l.state.Get([]byte("quorate-wal-segments"))
		l.must(err)
		l.appendBatches(1)
		if len(l.glob("*.wal")) == 1 {
			continue
		}
		_, want := l.bounds()
		l.kill()
		l.must(os.Remove(l.glob("*.wal")[1]))
		l.must(l.state.Set([]byte("quorate-wal-segments"), before))
		l.must(l.open())
		if _, last := l.bounds(); last != want {
			t.Fatalf("the log reaches to entry %d, want %d", last, want)
		}
		l.appendBatches(30)
		l.must(raftguard.VerifyLog(l.log, 0))
		l.must(l.Close())
		l.must(l.open())
		if first, last := l.bounds(); first != 1 || last != want+90 {
			t.Fatalf("the log reaches from %d to %d, want 1 to %d", first, last, want+90)
		}
		return
	}
	t.Fatal("no segment was completed")
}

// TestATornRotation tears the last append of a segment, with its index.
func TestATornRotation(t *testing.T) {
	l := newLog(t)
	for {
		before := l.read()
		state, err := l.state.Get([]byte("quorate-wal-segments"))
		l.must(err)
		_, want := l.bounds()
		l.appendBatches(1)
		if len(l.glob("*.wal")) == 1 {
			continue
		}
		path := l.glob("*.wal")[0]
		after, err := os.ReadFile(path)
		l.must(err)
		l.kill()
		l.must(os.Remove(l.glob("*.wal")[1]))
		l.must(l.state.Set([]byte("quorate-wal-segments"), state))
		after[len(bytes.TrimRight(before[path], "\x00"))+100] ^= 1
		l.must(os.WriteFile(path, after, 0o600))
		l.must(os.WriteFile(l.markPath(), before[l.markPath()], 0o600))
		l.must(l.open())
		if _, last := l.bounds(); last != want {
			t.Fatalf("the log reaches to entry %d, want %d", last, want)
		}
		l.appendBatches(3)
		return
	}
}

// TestACrashWithinATruncation truncates the end of the log; the crash comes after the mark was lowered, or after all.
func TestACrashWithinATruncation(t *testing.T) {
	l := newLog(t)
	l.appendBatches(5)
	files := l.read()
	l.must(l.log.DeleteRange(10, 15))
	lowered := l.read()[l.markPath()]
	l.kill()
	l.must(l.open())
	if _, last := l.bounds(); last != 9 {
		t.Fatalf("the log reaches to entry %d, want 9", last)
	}
	if bytes.Equal(lowered, files[l.markPath()]) {
		t.Fatal("the mark was not lowered")
	}
	l.appendBatches(1)
	l.must(l.Close())
	l.must(l.openAndExpect(12))
}

func (l *testLog) openAndExpect(want uint64) error {
	if err := l.open(); err != nil {
		return err
	}
	if _, last := l.bounds(); last != want {
		return fmt.Errorf("the log reaches to entry %d, want %d", last, want)
	}
	return nil
}
