package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/sink"
	"github.com/quorate/quorate/internal/verify"
)

// source is a ledger that makes records when a test says so.
type source struct {
	mu      sync.Mutex
	ring    audit.Ring
	changed chan struct{}
}

func newSource() *source { return &source{changed: make(chan struct{})} }

func (s *source) AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring.After(after, limit), s.ring.Head(), s.changed
}

func (s *source) add(count int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range count {
		s.ring.Append(audit.Record{Kind: audit.Access, Action: "CreateAccount", Outcome: audit.Applied, Reason: reason})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func options(path string, from sink.Source) sink.Options {
	return sink.Options{
		Path: path, MaxBytes: 64 << 20, Keep: 3, Server: "n1", Version: "test", Source: from, Log: hclog.NewNullLogger(),
		Now: time.Now,
	}
}

type running struct {
	*sink.Sink

	stop func()
}

func start(t testing.TB, o sink.Options) *running {
	t.Helper()
	s, err := sink.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { s.Run(ctx) })
	return &running{s, sync.OnceFunc(func() {
		cancel()
		loop.Wait()
	})}
}

// readFiles reads the oldest first.
func readFiles(t testing.TB, paths ...string) ([]audit.Record, audit.Verifier) {
	t.Helper()
	var v audit.Verifier
	var list []audit.Record
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = audit.ReadLines(file, func(number int, line []byte) error {
			r, err := v.Add(line)
			list = append(list, r)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			return nil
		})
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return list, v
}

// kinds replaces equal ones behind each other by one with their number.
func kinds(list []audit.Record) string {
	var names []string
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Kind == list[0].Kind {
			n++
		}
		name := string(list[0].Kind)
		if n > 1 {
			name = fmt.Sprintf("%d %s", n, name)
		}
		names, list = append(names, name), list[n:]
	}
	return strings.Join(names, " ")
}

// TestARestartedServerWritesNothingTwice: also while its ledger is behind the file, and after a torn line.
func TestARestartedServerWritesNothingTwice(t *testing.T) {
	path, from := filepath.Join(t.TempDir(), "audit.log"), newSource()
	synctest.Test(t, func(t *testing.T) {
		from.changed = make(chan struct{})
		s := start(t, options(path, from))
		from.add(3, "first")
		synctest.Wait()
		s.stop()

		again := newSource() // applies its log once more
		s = start(t, options(path, again))
		synctest.Wait()
		again.add(2, "first")
		synctest.Wait()
		again.add(1, "first")
		again.add(1, "later")
		synctest.Wait()
		s.stop()
		list, v := readFiles(t, path)
		if got := kinds(list); got != "start 3 access start access" || v.Ledger != again.ring.Head() {
			t.Errorf("got %s", got)
		}

		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = file.WriteString(`{"chain":"ledger","number":5,"ind`)
		_ = file.Close()
		s = start(t, options(path, again))
		again.add(1, "last")
		synctest.Wait()
		s.stop()
		if list, _ := readFiles(t, path); len(list) != 8 || !strings.HasSuffix(kinds(list), "access") {
			t.Errorf("after a torn line: %s", kinds(list))
		}
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
}

// TestGapsAreDeclared: what the ledger has forgotten, and the chain of another ledger.
func TestGapsAreDeclared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		s := start(t, options(path, from))
		from.add(2, "first")
		synctest.Wait()
		s.stop()
		from.add(audit.MaxRecords+3, "while it was down")
		s = start(t, options(path, from))
		synctest.Wait()
		s.stop()
		list, v := readFiles(t, path)
		gap := list[4] // behind the second start
		if gap.Kind != audit.Gap || gap.From != 3 || gap.To != 5 || v.Missing != 3 || v.Ledger != from.ring.Head() {
			t.Errorf("got %+v, %+v", gap, v)
		}

		other := newSource()
		other.add(audit.MaxRecords+10, "another cluster")
		s = start(t, options(path, other))
		synctest.Wait()
		s.stop()
		if _, v := readFiles(t, path); v.Ledger != other.ring.Head() {
			t.Errorf("the chain of the other ledger ends at %+v", v.Ledger)
		}
	})
}

// TestRotation: the chains go on over files, and a restart finds where they are in an older one.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		o := options(path, from)
		o.MaxBytes = 4000
		for range 3 {
			s := start(t, o)
			for range 5 {
				from.add(2, strings.Repeat("x", 300))
				synctest.Wait()
			}
			s.stop()
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != 4 {
			t.Fatalf("there are %q, %v", files, err)
		}
		_, v := readFiles(t, path+".3", path+".2", path+".1", path)
		if v.Ledger != from.ring.Head() || v.Server.Number != 3 {
			t.Errorf("got %+v", v)
		}
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.Size() > o.MaxBytes || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
	})
}

// TestHoldsAreCountedOverFiles: of the newest log entry with records of allocations all are counted, wherever the file
// was rotated between them, so that a restarted server continues behind the last one.
func TestHoldsAreCountedOverFiles(t *testing.T) {
	for size := int64(700); size < 3000; size += 100 {
		path := filepath.Join(t.TempDir(), "audit.log")
		synctest.Test(t, func(t *testing.T) {
			from := newSource() // inside, because Wait does not return while a channel from outside is awaited
			o := options(path, from)
			o.MaxBytes, o.Keep, o.FindHolds = size, 100, true
			s := start(t, o)
			for _, index := range []uint64{7, 7, 9, 9, 9, 9} {
				s.Note(audit.Record{Kind: audit.Hold, Action: "granted", Index: index, Outcome: audit.Applied})
			}
			synctest.Wait()
			from.add(2, "the newest record of the ledger is in the newest file")
			synctest.Wait()
			s.stop()
			again, err := sink.Open(o)
			if err != nil || again.Holds() != (sink.HoldMark{Index: 9, Count: 4}) {
				t.Errorf("files of %d bytes: %+v, %v", size, again.Holds(), err)
			}
		})
	}
}

// TestRefusalsAreGathered: beyond ten a second of one address only their number is written.
func TestRefusalsAreGathered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options(path, newSource()))
		for range 422 {
			s.Note(audit.Record{Kind: audit.Refusal, Address: "10.0.0.1", Outcome: audit.Refused})
		}
		s.Note(audit.Record{Kind: audit.Refusal, Address: "10.0.0.2", Outcome: audit.Refused})
		s.Note(audit.Record{Kind: audit.Call, Address: "10.0.0.1", Outcome: audit.Done})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		s.Note(audit.Record{Kind: audit.Refusal, Address: "10.0.0.1", Outcome: audit.Refused})
		synctest.Wait()
		s.stop()
		list, _ := readFiles(t, path)
		if len(list) != 1+sink.MaxPerSecond+2+1+1 {
			t.Errorf("%d records: %s", len(list), kinds(list))
		}
		further := list[len(list)-2]
		if further.Count != 412 || further.Address != "10.0.0.1" || further.Outcome != audit.Refused {
			t.Errorf("got %+v", further)
		}
		if recent, _ := s.Recent(); len(recent) != len(list) {
			t.Errorf("%d records are shown", len(recent))
		}
	})
}

// TestSequenceNumbersRise: the newest records have sequence numbers without gaps, also of those that have gone, and
// those after a restart are higher.
func TestSequenceNumbersRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sink.Open(options("", newSource()))
		if err != nil {
			t.Fatal(err)
		}
		_, first := s.Recent()
		for range sink.MaxRecent + 7 {
			s.Note(audit.Record{Kind: audit.Call})
		}
		s.Note(audit.Record{Kind: audit.Hold}) // is not shown
		recent, newest := s.Recent()
		if len(recent) != sink.MaxRecent || newest != first+sink.MaxRecent+7 {
			t.Errorf("%d records up to %d, after %d", len(recent), newest, first)
		}
		time.Sleep(time.Second)
		again, err := sink.Open(options("", newSource()))
		if err != nil {
			t.Fatal(err)
		}
		if _, begins := again.Recent(); begins <= newest {
			t.Errorf("after a restart they begin at %d, and were at %d", begins, newest)
		}
	})
}

// TestAFileThatCannotBeWritten: records wait, what does not fit is counted, and everything comes when it can.
func TestAFileThatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(folder, "audit.log")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		s, err := sink.Open(options(path, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		from.add(2, "while it fails")
		for range sink.MaxWaiting + 5 {
			s.Note(audit.Record{Kind: audit.Call, Outcome: audit.Done})
		}
		if err := s.Require(t.Context(), audit.Record{Kind: audit.Intent}); err == nil {
			t.Error("a record is required that does not fit")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { s.Run(ctx) })
		time.Sleep(3 * time.Second)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		cancel()
		loop.Wait()
		list, v := readFiles(t, path)
		last := list[len(list)-1]
		lost := list[len(list)-3] // in front of the two of the ledger
		if v.Ledger != from.ring.Head() || lost.Kind != audit.Loss || lost.Count != 6 || last.Chain != audit.Ledger {
			t.Errorf("got %+v, the last is %+v", v, last)
		}
	})
}

// TestRequiredRecords: the caller waits until the record is on disk, and learns that it is not.
func TestRequiredRecords(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(folder, "audit.log")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := options(path, newSource())
		o.MaxBytes = 1 // each record begins a new file
		s := start(t, o)
		synctest.Wait()
		if err := s.Require(t.Context(), audit.Record{Kind: audit.Intent, Action: "SetLimits"}); err != nil {
			t.Error(err)
		}
		if list, _ := readFiles(t, path); len(list) != 1 || list[0].Action != "SetLimits" {
			t.Errorf("got %+v", list)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Require(t.Context(), audit.Record{Kind: audit.Intent, Action: "MoveNode"}); err == nil {
			t.Error("a record is on a disk that is gone")
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.Require(t.Context(), audit.Record{Kind: audit.Intent, Action: "RollBack"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		s.stop()
		if list, _ := readFiles(t, path); list[0].Action != "RollBack" {
			t.Errorf("got %+v", list)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Require(ended, audit.Record{Kind: audit.Intent}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFilesThatAreNotRecords: a server does not append to another file, nor to a broken one.
func TestFilesThatAreNotRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Open(options(path, newSource())); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v", err)
	}
	if _, err := sink.Open(options(t.TempDir(), newSource())); err == nil {
		t.Error("a folder is a file")
	}
}

// TestStandardOutput: whole lines, from the first record on.
func TestStandardOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := options("-", newSource())
		o.Out = &out
		from := o.Source.(*source)
		s := start(t, o)
		from.add(2, "x")
		synctest.Wait()
		s.stop()
		if lines := strings.Count(out.String(), "\n"); lines != 3 {
			t.Errorf("got %q", out.String())
		}
	})
}

// TestRandomRestarts: whatever happens between records, the file has each of them once.
func TestRandomRestarts(t *testing.T) {
	verify.Check(t, func(rt *rapid.T) {
		path, from := filepath.Join(t.TempDir(), "audit.log"), newSource()
		o := options(path, from)
		o.MaxBytes, o.Keep = int64(rapid.IntRange(500, 3000).Draw(rt, "size")), 1000
		for range rapid.IntRange(1, 6).Draw(rt, "runs") {
			s, err := sink.Open(o)
			if err != nil {
				rt.Fatal(err)
			}
			from.add(rapid.IntRange(0, 5).Draw(rt, "records"), "x")
			for range rapid.IntRange(0, 3).Draw(rt, "calls") {
				s.Note(audit.Record{Kind: audit.Call})
			}
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			s.Run(ended) // writes what there is
		}
		var files []string
		for n := 1000; n > 0; n-- {
			if name := fmt.Sprintf("%s.%d", path, n); fileExists(name) {
				files = append(files, name)
			}
		}
		_, v := readFiles(t, append(files, path)...)
		if v.Ledger != from.ring.Head() || v.Missing > 0 {
			rt.Fatalf("got %+v, want %+v", v, from.ring.Head())
		}
	})
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
