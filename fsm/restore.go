package fsm

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// maxRecord bounds one record, so that a corrupt length cannot exhaust memory. A tree with the maximum number of nodes
// fits.
const maxRecord = 256 << 20

// Restore replaces the ledger by a snapshot after reading and verifying all of it: a corrupt snapshot changes nothing.
// A halted state machine stays halted, because its node is stopping.
func (f *FSM) Restore(source io.ReadCloser) error {
	defer source.Close() //nolint:errcheck // reading only: everything was verified by then
	loaded, header, err := loadSnapshot(source, f.options, nil)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted != nil {
		return f.halted
	}
	before, head := f.nextDue(), f.records.Head()
	f.ledger, f.records, f.applied = loaded.ledger, loaded.records, header.GetIndex()
	f.ledger.BeginChanges(f.applied)
	f.setFormat(header.GetFormat())
	copy(f.chain[:], header.GetChain())
	f.replacement = nil
	f.lastEvent = header.GetLastEvent()
	f.feed.restart(cmp.Or(f.lastEvent, f.applied), f.applied, f.ledger.Reader().Now())
	f.publishBook()
	f.notifyRecords(head)
	f.notifyWaiters(before)
	return nil
}

// CheckSnapshot verifies a snapshot without keeping it: format, records, digest, and every invariant of the ledger.
func CheckSnapshot(source io.Reader) error {
	_, _, err := loadSnapshot(source, Options{Bounds: quota.DefaultBounds()}, nil)
	return err
}

// loadedState is what a snapshot has.
type loadedState struct {
	ledger  *ledger.Ledger
	records audit.Ring
}

// loadSnapshot reads to the end. If chosen is not nil, it replaces the state of the access book.
func loadSnapshot(source io.Reader, o Options, chosen func(access.State) access.State,
) (loadedState, *logv1.Header, error) {
	r := &recordReader{in: bufio.NewReaderSize(source, 1<<20), digest: sha256.New(), formats: o.Formats}
	r.access.chosen = chosen
	header, err := r.readHeader()
	if err != nil {
		return loadedState{}, nil, fmt.Errorf("read snapshot: %w", err)
	}
	loader := ledger.NewRestorer(o.Bounds, ledger.Header{
		Now:      quota.Stamp{At: quota.Instant(header.GetTimeMs()), Wall: header.GetWallMs()},
		Revision: header.GetRevision(), Fence: header.GetFence(), NodeID: header.GetNodeId(),
		ArrivalSeq: header.GetSeat(), Event: header.GetEvent(), StateSeq: header.GetTurn(), Arrival: header.GetArrival(),
		TreeVersion: header.GetTreeVersion(), LimitRequest: header.GetLimitRequest(),
		Webhook:     header.GetWebhook(),
		CivilOffset: quota.Span(header.GetCivilOffsetMs()), Civil: quota.CivilTime(header.GetCivilMs()),
		Scheduled: header.GetScheduledLimit(),
	})
	if err := r.readBody(loader); err != nil {
		return loadedState{}, nil, fmt.Errorf("read snapshot: record %d: %w", r.records, err)
	}
	ledger, err := loader.Finish()
	if err != nil {
		return loadedState{}, nil, fmt.Errorf("read snapshot: the state in it is broken: %w", err)
	}
	return loadedState{ledger, r.audit}, header, nil
}

// recordReader reads length-prefixed records and hashes them.
type recordReader struct {
	in      *bufio.Reader
	formats *Formats
	digest  hash.Hash
	buffer  []byte
	payload []byte // the record in the buffer, without its length
	exact   bool   // the record in the buffer has only fields that this version knows
	records uint64
	scanner entryScanner
	access  accessReader
	audit   audit.Ring
}

func (r *recordReader) readHeader() (*logv1.Header, error) {
	if err := r.readMark(); err != nil {
		return nil, err
	}
	if err := r.readRecord(); err != nil {
		return nil, err
	}
	record, err := r.decodeRecord()
	if err != nil {
		return nil, err
	}
	r.countRecord()
	header := record.GetHeader()
	switch {
	case header == nil:
		return nil, errors.New("it does not begin with a header")
	case header.GetFormat() < quota.FirstFormat || header.GetFormat() > r.formats.Newest():
		return nil, fmt.Errorf("it has format %d, but this version understands 1 to %d; run a newer version",
			header.GetFormat(), r.formats.Newest())
	case !r.exact:
		return nil, errUnknownFields
	case len(header.GetChain()) != sha256.Size:
		return nil, errors.New("its header has no digest of the log")
	}
	return header, nil
}

func (r *recordReader) readMark() error {
	mark, err := r.in.Peek(len(snapshotMark))
	switch {
	case string(mark) == snapshotMark:
		_, err = r.in.Discard(len(snapshotMark))
		return err
	case len(mark) > 2 && (mark[1] == formerHeaderTag || mark[2] == formerHeaderTag):
		return ErrDevelopmentBuild
	case err != nil:
		return fmt.Errorf("the snapshot ends early: %w", err)
	}
	return errors.New("it does not begin like a snapshot: it was damaged, or another program wrote it")
}

func (r *recordReader) readBody(loader *ledger.Restorer) error {
	for {
		if err := r.readRecord(); err != nil {
			return err
		}
		if image, ended, ok := r.scanner.scanAllocation(r.payload); ok {
			if err := errors.Join(r.access.finish(loader), addAllocation(loader, image, ended)); err != nil {
				return err
			}
			r.countRecord()
			continue
		}
		record, err := r.decodeRecord()
		if err != nil {
			return err
		}
		if !r.exact {
			return errUnknownFields
		}
		if isAccess, err := r.access.addRecord(record); err != nil {
			return err
		} else if isAccess {
			r.countRecord()
			continue
		}
		if err := r.access.finish(loader); err != nil {
			return err
		}
		if trailer := record.GetTrailer(); trailer != nil {
			return r.checkTrailer(trailer)
		}
		if err := r.addRecord(loader, record); err != nil {
			return err
		}
		r.countRecord()
	}
}

func addAllocation(loader *ledger.Restorer, image ledger.AllocationImage, ended bool) error {
	if ended {
		return loader.AddEnded(image)
	}
	return loader.AddHeld(image)
}

func (r *recordReader) addRecord(loader *ledger.Restorer, record *logv1.Record) error {
	switch part := record.GetRecord().(type) {
	case *logv1.Record_Policy:
		return loader.AddPolicy(decodePolicy(part.Policy))
	case *logv1.Record_Tree:
		return loader.AddTree(decodeTreeImage(part.Tree))
	case *logv1.Record_Revision:
		return loader.AddRevision(decodeRevision(part.Revision))
	case *logv1.Record_LimitRequest:
		return loader.AddLimitRequest(decodeLimitRequest(part.LimitRequest))
	case *logv1.Record_Webhook:
		return loader.AddWebhook(decodeWebhook(part.Webhook))
	case *logv1.Record_ScheduledLimit:
		return loader.AddScheduled(decodeScheduledImage(part.ScheduledLimit))
	case *logv1.Record_Item:
		return loader.AddItem(decodeItem(part.Item))
	case *logv1.Record_Held:
		return loader.AddHeld(decodeAllocation(part.Held, false))
	case *logv1.Record_Ended:
		return loader.AddEnded(decodeAllocation(part.Ended, true))
	case *logv1.Record_Waiting:
		return loader.AddWaiting(decodeWaiting(part.Waiting))
	case *logv1.Record_Event:
		return loader.AddEvent(decodeEvent(part.Event))
	case *logv1.Record_Audit:
		return r.audit.Load(part.Audit.GetLine())
	}
	return errors.New("this version does not know this record; run a newer version")
}

func (r *recordReader) checkTrailer(trailer *logv1.Trailer) error {
	switch {
	case trailer.GetRecords() != r.records:
		return fmt.Errorf("%d records were written but %d read", trailer.GetRecords(), r.records)
	case !bytes.Equal(trailer.GetDigest(), r.digest.Sum(nil)):
		return errors.New("the digest does not match: the snapshot was damaged")
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end of the snapshot")
	}
	return nil
}

func (r *recordReader) readRecord() error {
	length, err := r.readLength()
	if err != nil {
		return err
	}
	r.buffer = appendLength(r.buffer[:0], length)
	from := len(r.buffer)
	if r.buffer, err = readMore(r.in, r.buffer, length); err != nil {
		return fmt.Errorf("the snapshot ends early: %w", err)
	}
	r.payload = r.buffer[from:]
	return nil
}

func (r *recordReader) decodeRecord() (record *logv1.Record, err error) {
	record = &logv1.Record{}
	if r.exact, err = unmarshal(r.payload, record); err != nil {
		return nil, fmt.Errorf("the snapshot was damaged: %w", err)
	}
	return record, nil
}

// readLength reads a length prefix. It must have the shortest encoding, because the digest is computed from a
// re-encoded length.
func (r *recordReader) readLength() (int, error) {
	head, err := r.in.Peek(binary.MaxVarintLen64)
	length, n := binary.Uvarint(head)
	switch {
	case n == 0 && err != nil:
		return 0, fmt.Errorf("the snapshot ends early: %w", err)
	case n <= 0 || length > maxRecord || n != protowire.SizeVarint(length):
		return 0, fmt.Errorf(
			"the length of a record is not one, or larger than any can be (%d): the snapshot was damaged", maxRecord)
	}
	_, err = r.in.Discard(n)
	return int(length), err
}

// countRecord adds the record in the buffer to the digest.
func (r *recordReader) countRecord() {
	r.digest.Write(r.buffer)
	r.records++
}

// readMore appends n bytes in steps, so that a corrupt length fails before it allocates much memory.
func readMore(in io.Reader, buffer []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 1<<20)
		at := len(buffer)
		buffer = slices.Grow(buffer, step)[:at+step]
		if _, err := io.ReadFull(in, buffer[at:]); err != nil {
			return buffer, err
		}
		n -= step
	}
	return buffer, nil
}
