package fsm

import (
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Records of held and ended allocations are nearly all of a snapshot, so they are written and read without messages, as
// frequent commands are (append.go, scan.go). The bytes are the same, and what is rare or odd is left to the standard
// codec in snapshot_records.go, which says what a record means.

// Fields of a Record.
const (
	heldRecord  protowire.Number = 4
	endedRecord protowire.Number = 5
)

func writeAllocations(list iter.Seq[ledger.AllocationImage], field protowire.Number) func(*recordWriter) error {
	return func(w *recordWriter) error {
		for image := range list {
			if err := w.writeAllocation(image, field); err != nil {
				return err
			}
		}
		return nil
	}
}

func (w *recordWriter) writeAllocation(image ledger.AllocationImage, field protowire.Number) error {
	var plain bool
	if w.body, plain = appendAllocation(w.body[:0], image, field); !plain {
		return w.writeRecord(allocationRecord(image, field))
	}
	w.buffer = append(appendLength(w.buffer[:0], len(w.body)), w.body...)
	return w.flushRecord()
}

func allocationRecord(image ledger.AllocationImage, field protowire.Number) *logv1.Record {
	if field == heldRecord {
		return &logv1.Record{Record: &logv1.Record_Held{Held: encodeAllocation(image)}}
	}
	return &logv1.Record{Record: &logv1.Record_Ended{Ended: encodeAllocation(image)}}
}

// appendAllocation appends the record of an allocation. It reports false, and what it appended means nothing, if the
// allocation has a rare property or a text that is not valid UTF-8.
func appendAllocation(to []byte, a ledger.AllocationImage, field protowire.Number) ([]byte, bool) {
	if hasRareParts(&a) {
		return to, false
	}
	w := fieldWriter{data: to}
	record := w.beginMessage(field)
	request := w.beginMessage(1)
	w.writeAllocate(a.Request)
	w.endMessage(request)
	w.writeNumber(2, a.Fence)
	w.writeNumber(3, uint64(a.Granted.At))
	w.writeNumber(4, uint64(a.Granted.Wall))
	w.writePacked(5, a.Placed)
	w.writeTexts(6, a.PlacedPaths)
	if a.Ended != nil {
		w.writeNumber(7, uint64(a.Ended.At))
		w.writeNumber(8, uint64(a.Ended.Wall))
	}
	if a.State != quota.Released { // as encodeAllocation
		w.writeNumber(9, uint64(a.State))
	}
	w.writeNumber(10, uint64(a.Until))
	w.writeNumber(11, protowire.EncodeBool(a.Forced))
	w.writeText(12, a.By)
	w.writePacked(16, a.ArrivalSeqs)
	w.writeNumber(18, uint64(a.Expires))
	w.writeNumber(19, uint64(a.TTL))
	w.writeText(25, a.Owner)
	w.endMessage(record)
	return w.data, !w.invalid
}

func hasRareParts(a *ledger.AllocationImage) bool {
	return len(a.Preempted)+len(a.Displaced)+len(a.Homes)+len(a.Groups)+len(a.Data)+len(a.Items) > 0 ||
		a.RevokedBy != "" || a.Unclaimed || a.Undo != nil || a.Generation != 0 || len(a.First) > 0 || a.SplitFrom != "" ||
		a.EndReason != nil || a.RevokeReason != nil || a.MadeRoom != nil ||
		a.Alternative != 0 || a.DeclaredEnd != 0 || a.Dropped != 0 || a.Change != 0
}

func (w *fieldWriter) writePacked(number protowire.Number, list []uint64) {
	if len(list) == 0 {
		return
	}
	body := w.beginMessage(number)
	for _, value := range list {
		w.data = protowire.AppendVarint(w.data, value)
	}
	w.endMessage(body)
}

// scanAllocation reads the record of an allocation, and reports whether it has ended. It reports not ok for other
// records, and for all bytes that appendAllocation does not write.
func (s *entryScanner) scanAllocation(data []byte) (a ledger.AllocationImage, ended, ok bool) {
	r := fieldReader{data: data}
	ended = r.hasField(endedRecord)
	r.failIf(!ended && !r.hasField(heldRecord))
	rest := r.enterMessage()
	r.failIf(!r.hasField(1))
	afterRequest := r.enterMessage()
	a.Request = s.scanAllocate(&r)
	r.leaveMessage(afterRequest)
	a.Fence = r.readNumber(2)
	a.Granted = quota.Stamp{At: quota.Instant(r.readNumber(3)), Wall: int64(r.readNumber(4))}
	a.Placed = s.scanPacked(&r, 5)
	for r.hasField(6) {
		a.PlacedPaths = append(a.PlacedPaths, s.names.find(r.readElement()))
	}
	end := quota.Stamp{At: quota.Instant(r.readNumber(7)), Wall: int64(r.readNumber(8))}
	if ended {
		a.Ended = &end
	}
	r.failIf(!ended && end != quota.Stamp{}) // the standard decoder ignores it
	state := r.readNumber(9)
	r.failIf(state > math.MaxUint8 || quota.State(state) == quota.Released)
	a.State, a.Until = quota.State(state), quota.Instant(r.readNumber(10))
	forced := r.readNumber(11)
	r.failIf(forced > 1)
	a.Forced, a.By = forced == 1, string(r.readText(12))
	a.ArrivalSeqs = s.scanPacked(&r, 16)
	a.Expires, a.TTL = quota.Instant(r.readNumber(18)), quota.Span(r.readNumber(19))
	a.Owner = s.names.find(r.readText(25))
	r.leaveMessage(rest)
	return a, ended, r.isDone()
}

// scanPacked returns nil if the next field is another.
func (s *entryScanner) scanPacked(r *fieldReader, number protowire.Number) []uint64 {
	if !r.hasField(number) {
		return nil
	}
	rest := r.enterMessage()
	r.failIf(len(r.data) == 0)
	s.numbers = s.numbers[:0]
	for len(r.data) > 0 {
		s.numbers = append(s.numbers, r.readVarint())
	}
	r.leaveMessage(rest)
	return exactCopy(s.numbers)
}
