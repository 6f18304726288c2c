// Package sink writes the audit records of a server to a file, or to standard output: those of the ledger's chain,
// which every member has, and a chain of the server's own for what only this server saw.
//
// The ring of the ledger is the buffer: [Sink.Run] follows it, so the server never waits for the disk of the file. The
// file itself says how far it is, so a restarted server writes nothing twice; what the ring has forgotten meanwhile
// becomes one record of a gap. Records of the server wait in memory, at most [MaxWaiting] of them, and are lost with
// the process, unless their caller waits for the disk ([Sink.Require]); what did not fit is counted in a record.
package sink

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/internal/audit"
)

const (
	// MaxWaiting bounds the records of the server that are not written yet.
	MaxWaiting = 10_000
	// MaxRecent bounds the records of the server that [Sink.Recent] shows.
	MaxRecent = 1000
	// page is how many records of the ledger are written at once.
	page = 500
	// retryPause is the time between attempts while the file cannot be written.
	retryPause = time.Second
)

// Source has the records of the ledger.
type Source interface {
	// AuditRecords returns at most limit records with numbers above a number, the newest record, and a channel that is
	// closed when there are others.
	AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{})
}

// Options configure a Sink. All fields but Path are required.
type Options struct {
	// Path is the file; "-" writes to Out; empty writes nothing, and only [Sink.Recent] works.
	Path string
	Out  io.Writer
	// MaxBytes is the size at which the file is rotated, and Keep how many rotated files are kept.
	MaxBytes int64
	Keep     int
	// Server is the id of this server, Version what its start records.
	Server, Version string
	Source          Source
	Log             hclog.Logger
	// Now is the wall clock.
	Now func() time.Time
	// FindHolds also looks for the newest record of an allocation, see [Sink.Holds].
	FindHolds bool
}

// HoldMark says how many records of allocations a file has of the log entry of the newest one.
type HoldMark struct {
	Index uint64
	Count uint32
}

// Sink writes the records of one server. [Sink.Note] is safe for concurrent use, and may be called before Run.
type Sink struct {
	options Options
	file    lineWriter
	// ledger and server are the newest records in the file. Only Run uses them once it runs. looked is true once the
	// newest record of the ledger was compared with the ledger's.
	ledger, server audit.Head
	looked         bool
	holds          HoldMark

	mu      sync.Mutex // protects the fields below
	waiting []waitingRecord
	lost    uint64
	recent  []audit.Record // oldest first
	newest  uint64         // the sequence number of the last of recent
	gathers gatherings
	noted   chan struct{} // has an element if there is something to write
}

type waitingRecord struct {
	audit.Record

	// written, if not nil, gets nil when the record is on disk, or why it is not; then it is dropped.
	written chan<- error
}

// Open opens the file, finds how far it is, and removes an incomplete line at its end. It fails if the file is not one
// of audit records.
func Open(o Options) (*Sink, error) {
	s := &Sink{options: o, noted: make(chan struct{}, 1), gathers: gatherings{now: o.Now}}
	// Sequence numbers begin with the time, so that a position in the records before a restart is before those after it.
	s.newest = uint64(max(o.Now().UnixMicro(), 0))
	switch o.Path {
	case "":
		s.file = discard{}
		return s, nil
	case "-":
		s.file = streamWriter{o.Out}
	default:
		file, found, err := openFile(o.Path, o.MaxBytes, o.Keep, o.FindHolds)
		if err != nil {
			return nil, fmt.Errorf("the audit file %s: %w", o.Path, err)
		}
		s.file, s.ledger, s.server, s.holds = file, found.Ledger, found.Server, found.Holds
	}
	s.Note(audit.Record{Kind: audit.Start, Action: "start", Detail: "version " + o.Version, Outcome: audit.Done})
	return s, nil
}

// Holds is the newest record of an allocation when the file was opened, so that nothing is recorded twice; the zero
// value if there is none.
func (s *Sink) Holds() HoldMark { return s.holds }

// IsBusy reports whether so many records wait for the file that those which can be made again later should not be
// noted now.
func (s *Sink) IsBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > MaxWaiting/2
}

// Note takes a record of this server: it sets chain, number, server, and the time if it has none. It does not wait for
// the file.
func (s *Sink) Note(r audit.Record) {
	r.Chain, r.Server = audit.Server, s.options.Server
	if r.WallMs == 0 {
		r.WallMs = s.options.Now().UnixMilli()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathers.take(r) {
		s.add(r)
	}
	s.wake()
}

// add expects that the lock is held.
func (s *Sink) add(r audit.Record) {
	if r.Kind != audit.Hold { // which are too many to be shown, and would leave no room for others
		s.recent = append(s.recent, r)
		s.newest++
	}
	if len(s.recent) > MaxRecent {
		s.recent = s.recent[1:]
	}
	if s.options.Path == "" {
		return
	}
	if len(s.waiting) >= MaxWaiting {
		s.lost++
		return
	}
	s.waiting = append(s.waiting, waitingRecord{Record: r})
}

// Require takes records of this server and returns when all of them are on disk. Records of concurrent callers share
// one write to the disk: what comes during one is in the next. If there is an error, some of the records may be in the
// file nevertheless.
func (s *Sink) Require(ctx context.Context, list ...audit.Record) error {
	now := s.options.Now().UnixMilli()
	written := make(chan error, len(list)) // the loop never waits for a caller that has gone
	s.mu.Lock()
	if len(s.waiting)+len(list) > MaxWaiting {
		s.mu.Unlock()
		return fmt.Errorf("more than %d records would wait for the audit file", MaxWaiting)
	}
	for _, r := range list {
		r.Chain, r.Server, r.WallMs = audit.Server, s.options.Server, now
		s.waiting = append(s.waiting, waitingRecord{r, written})
	}
	s.mu.Unlock()
	s.wake()
	for range list {
		select {
		case err := <-written:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Sink) wake() {
	select {
	case s.noted <- struct{}{}:
	default:
	}
}

// Recent returns the newest records of this server, oldest first, without numbers and hashes: some of them may not be
// written yet. newest is the sequence number of the last of them; sequence numbers have no gaps.
func (s *Sink) Recent() (records []audit.Record, newest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]audit.Record(nil), s.recent...), s.newest
}

// Run writes records until ctx ends, and then those that wait. It closes the file.
func (s *Sink) Run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		changed, err := s.writeAll()
		switch {
		case err != nil && !failing:
			s.options.Log.Error("the audit file cannot be written; records wait in memory", "file", s.options.Path, "error", err)
		case err == nil && failing:
			s.options.Log.Info("the audit file is written again", "file", s.options.Path)
		}
		failing = err != nil
		s.pause(ctx, changed, failing)
	}
	if _, err := s.writeAll(); err != nil {
		s.options.Log.Error("the last audit records were not written", "file", s.options.Path, "error", err)
	}
	if err := s.file.Close(); err != nil {
		s.options.Log.Error("closing the audit file", "file", s.options.Path, "error", err)
	}
}

// pause waits until there is something to write: at the latest until gathered calls are due.
func (s *Sink) pause(ctx context.Context, changed <-chan struct{}, failing bool) {
	var due <-chan time.Time
	if s.hasGathered() || failing {
		timer := time.NewTimer(retryPause)
		defer timer.Stop()
		due = timer.C
	}
	if failing {
		select {
		case <-ctx.Done():
		case <-due:
		}
		return
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-s.noted:
	case <-due:
	}
}

func (s *Sink) hasGathered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gathers.any()
}

// writeAll returns a channel that is closed when the ledger has more.
func (s *Sink) writeAll() (<-chan struct{}, error) {
	for {
		list, err := s.writeServer(s.takeWaiting())
		var changed <-chan struct{}
		more := false
		if err == nil {
			changed, more, err = s.writeLedger()
		}
		if err == nil {
			err = s.file.Sync()
		}
		s.settle(list, err)
		if err != nil || !more {
			return changed, err
		}
	}
}

func (s *Sink) writeLedger() (changed <-chan struct{}, more bool, err error) {
	if s.options.Path == "" {
		return nil, false, nil
	}
	entries, head, changed := s.options.Source.AuditRecords(s.ledger.Number, page)
	if head.Number < s.ledger.Number {
		return changed, false, nil // this server is behind its file: it applies its log again
	}
	if !s.looked {
		s.looked = true
		if s.isOtherChain() {
			gap := audit.Record{
				Kind: audit.Gap, Action: "gap", From: 1,
				Detail: "the ledger has another record under the number of the last one in this file: its chain begins again",
			}
			entries, _, changed = s.options.Source.AuditRecords(0, page)
			if len(entries) > 0 {
				gap.To = entries[0].Number - 1
			}
			if err := s.writeGap(gap); err != nil {
				s.looked = false
				return changed, false, err
			}
			s.ledger.Number = gap.To
		}
	}
	for _, e := range entries {
		if e.Number > s.ledger.Number+1 {
			gap := audit.Record{
				Kind: audit.Gap, Action: "gap", From: s.ledger.Number + 1, To: e.Number - 1,
				Detail: "this server did not have these records; other members may",
			}
			if err := s.writeGap(gap); err != nil {
				return changed, false, err
			}
			s.ledger.Number = gap.To
		}
		if err := s.file.WriteLine(e.Line); err != nil {
			return changed, false, err
		}
		s.ledger = e.Head
	}
	return changed, len(entries) == page, nil
}

// isOtherChain reports whether the ledger has another record under the number of the newest one in the file, as in a
// cluster that was made anew.
func (s *Sink) isOtherChain() bool {
	if s.ledger.Number == 0 {
		return false
	}
	same, _, _ := s.options.Source.AuditRecords(s.ledger.Number-1, 1)
	return len(same) == 1 && same[0].Number == s.ledger.Number && same[0].Hash != s.ledger.Hash
}

func (s *Sink) writeGap(gap audit.Record) error {
	s.options.Log.Warn("the audit file lacks records of the ledger", "file", s.options.Path, "from", gap.From, "to",
		gap.To)
	gap.Outcome = audit.Done
	return s.writeOwn(gap)
}

func (s *Sink) takeWaiting() []waitingRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.gathers.due() {
		s.add(r)
	}
	list := s.waiting
	if s.lost > 0 {
		list = append(list, waitingRecord{Record: audit.Record{
			Kind: audit.Loss, Action: "loss", Count: s.lost, Outcome: audit.Failed,
			Detail: "these records of this server did not fit into memory while the file could not be written",
		}})
	}
	s.waiting, s.lost = nil, 0
	return list
}

// writeServer writes records of this server. The list that it returns has those that were not written, and those whose
// callers wait for the disk.
func (s *Sink) writeServer(list []waitingRecord) ([]waitingRecord, error) {
	var awaited []waitingRecord
	for i, r := range list {
		if err := s.writeOwn(r.Record); err != nil {
			return append(awaited, list[i:]...), err
		}
		if r.written != nil {
			awaited = append(awaited, r)
		}
	}
	return awaited, nil
}

// settle tells callers whether their records are on disk. After an error it keeps the records that no caller waits for.
func (s *Sink) settle(list []waitingRecord, err error) {
	var kept []waitingRecord
	for _, r := range list {
		if r.written != nil {
			r.written <- err
		} else if err != nil {
			kept = append(kept, r)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(kept, s.waiting...)
}

func (s *Sink) writeOwn(r audit.Record) error {
	r.Chain, r.Server, r.Number = audit.Server, s.options.Server, s.server.Number+1
	if r.WallMs == 0 {
		r.WallMs = s.options.Now().UnixMilli()
	}
	r, line := audit.Encode(r, s.server.Hash)
	if err := s.file.WriteLine(line); err != nil {
		return err
	}
	s.server = audit.Head{Number: r.Number, Hash: r.Hash}
	return nil
}
