package fsm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

type snapshot struct {
	image  *ledger.Snapshot
	audit  []audit.Entry
	header *logv1.Header
}

// Snapshot captures the state; writers wait only for that, and Persist writes it concurrently with them. It fails
// during a replacement, because compacting the log would lose the parts received so far.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock() // a snapshot marks the shared pages
	defer f.mu.Unlock()
	switch {
	case f.halted != nil:
		return nil, f.halted
	case f.replacement != nil:
		return nil, errReplacing
	}
	return f.newSnapshot(), nil
}

// newSnapshot must be called with the lock held.
func (f *FSM) newSnapshot() *snapshot {
	image := f.ledger.Snapshot()
	return &snapshot{image: image, audit: f.records.Entries(), header: &logv1.Header{
		Format: f.format, Index: f.applied, Chain: bytes.Clone(f.chain[:]),
		TimeMs: int64(image.Header.Now.At), WallMs: image.Header.Now.Wall,
		Revision: image.Header.Revision, Fence: image.Header.Fence, NodeId: image.Header.NodeID,
		Seat: image.Header.ArrivalSeq, Event: image.Header.Event, Turn: image.Header.StateSeq, Arrival: image.Header.Arrival,
		TreeVersion: image.Header.TreeVersion, LimitRequest: image.Header.LimitRequest,
		Webhook: image.Header.Webhook, LastEvent: f.lastEvent,
		CivilOffsetMs: int64(image.Header.CivilOffset), CivilMs: int64(image.Header.Civil),
		ScheduledLimit: image.Header.Scheduled,
	}}
}

// Release does nothing: the garbage collector frees the snapshot.
func (s *snapshot) Release() {}

// Persist writes the snapshot and closes the sink, or cancels it.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.write(sink); err != nil {
		if cancelled := sink.Cancel(); cancelled != nil {
			return fmt.Errorf("write snapshot: %w (and cancel it: %w)", err, cancelled)
		}
		return fmt.Errorf("write snapshot: %w", err)
	}
	return sink.Close()
}

type recordWriter struct {
	out     io.Writer
	digest  hash.Hash
	buffer  []byte
	body    []byte // of a record, before its length is known
	records uint64
}

func (w *recordWriter) writeRecord(r *logv1.Record) error {
	var err error
	w.buffer, err = appendDelimited(w.buffer[:0], r)
	if err != nil {
		return err
	}
	return w.flushRecord()
}

func (w *recordWriter) flushRecord() error {
	w.digest.Write(w.buffer)
	w.records++
	_, err := w.out.Write(w.buffer)
	return err
}

func appendDelimited(buffer []byte, m proto.Message) ([]byte, error) {
	options := proto.MarshalOptions{Deterministic: true}
	buffer = appendLength(buffer, options.Size(m))
	return options.MarshalAppend(buffer, m)
}

// write streams the records: its memory use is independent of the size of the ledger.
func (s *snapshot) write(out io.Writer) error {
	w := &recordWriter{out: out, digest: sha256.New()}
	_, err := io.WriteString(out, snapshotMark)
	if err == nil {
		err = w.writeRecord(&logv1.Record{Record: &logv1.Record_Header{Header: s.header}})
	}
	for _, part := range s.recordLists() {
		if err == nil {
			err = part(w)
		}
	}
	if err != nil {
		return err
	}
	trailer := &logv1.Trailer{Records: w.records, Digest: w.digest.Sum(nil)}
	_, err = protodelim.MarshalTo(out, &logv1.Record{Record: &logv1.Record_Trailer{Trailer: trailer}})
	return err
}

// recordLists write the lists of records in the order of snapshot.proto.
func (s *snapshot) recordLists() []func(*recordWriter) error {
	return []func(*recordWriter) error{
		writeAccess(s.image.Book()),
		writeAll(slices.Values(s.image.Policies()), func(p quota.PolicySpec) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Policy{Policy: encodePolicy(p)}}
		}),
		writeAll(slices.Values(s.image.Trees()), func(t ledger.TreeImage) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Tree{Tree: encodeTreeImage(t)}}
		}),
		writeAll(slices.Values(s.image.Revisions()), func(r *quota.Revision) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Revision{Revision: encodeRevision(r)}}
		}),
		writeAll(slices.Values(s.image.LimitRequests()), func(r *quota.LimitRequest) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_LimitRequest{LimitRequest: encodeLimitRequest(r)}}
		}),
		writeAll(slices.Values(s.image.Webhooks()), func(w *quota.Webhook) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Webhook{Webhook: encodeWebhook(w)}}
		}),
		writeAll(slices.Values(s.image.Scheduled()), func(l ledger.ScheduledImage) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_ScheduledLimit{ScheduledLimit: encodeScheduledImage(l)}}
		}),
		writeAll(s.image.Items(), func(i ledger.ItemImage) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Item{Item: encodeItem(i)}}
		}),
		writeAllocations(s.image.Held(), heldRecord),
		writeAllocations(s.image.Ended(), endedRecord),
		writeAll(s.image.Waiting(), func(q ledger.WaitingImage) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Waiting{Waiting: encodeWaiting(q)}}
		}),
		writeAll(slices.Values(s.image.Events()), func(e *quota.Event) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Event{Event: encodeEvent(e)}}
		}),
		writeAll(slices.Values(s.audit), func(e audit.Entry) *logv1.Record {
			return &logv1.Record{Record: &logv1.Record_Audit{Audit: &logv1.AuditRecord{Line: e.Line}}}
		}),
	}
}

func writeAll[T any](list iter.Seq[T], encode func(T) *logv1.Record) func(*recordWriter) error {
	return func(w *recordWriter) error {
		for element := range list {
			if err := w.writeRecord(encode(element)); err != nil {
				return err
			}
		}
		return nil
	}
}
