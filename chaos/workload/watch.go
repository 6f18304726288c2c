package workload

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// watcher watches all changes at one server after the other, each from where the last one stopped.
type watcher struct {
	*caller

	session int64
	request *quoratev1.WatchAllocationsRequest
}

func startWatch(c *caller) func(context.Context) {
	w := &watcher{caller: c}
	return func(ctx context.Context) {
		if w.request == nil && !w.beginWatch(ctx) {
			return
		}
		w.followServer(ctx)
	}
}

// beginWatch begins a new watch after the index of a read.
func (w *watcher) beginWatch(ctx context.Context) bool {
	read := w.readLimits(ctx, "no tree has this name", readMode{})
	if read.Outcome != history.OK {
		return false
	}
	w.session++
	w.request = &quoratev1.WatchAllocationsRequest{AfterIndex: read.Index}
	begun := w.beginOp(history.Change, w.randomServer())
	begun.Session, begun.Index, begun.Change = w.session, read.Index, history.WatchBegins
	w.endOp(begun, nil)
	return true
}

// followServer watches one server for a while or until the stream ends. Watches that resume often show what resuming
// loses.
func (w *watcher) followServer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 50*w.config.Pause+time.Duration(w.random.Int64N(int64(300*w.config.Pause))))
	defer cancel()
	s := w.randomServer()
	stream, err := s.allocations.WatchAllocations(ctx, w.request)
	if err != nil {
		w.dropForgotten(err)
		return
	}
	for stream.Receive() {
		w.addChange(s, stream.Msg())
	}
	w.dropForgotten(stream.Err())
	_ = stream.Close() // the stream has ended
}

// dropForgotten drops a position that the server does not remember any more.
func (w *watcher) dropForgotten(err error) {
	if connect.CodeOf(err) == connect.CodeOutOfRange {
		w.request = nil
	}
}

func (w *watcher) addChange(s *server, m *quoratev1.WatchAllocationsResponse) {
	w.request.AfterIndex, w.request.AfterNumber = m.GetIndex(), m.GetNumber()
	if m.GetAllocation() == nil {
		return
	}
	o := w.beginOp(history.Change, s)
	o.Session, o.Index, o.Position, o.Ledger = w.session, m.GetIndex(), m.GetNumber(), m.GetLedgerTimeMs()
	o.ID, o.Change = m.GetAllocation().GetId(), enumName(m.GetChange().String(), "ALLOCATION_CHANGE_")
	o.Priority = m.GetAllocation().GetPriority()
	setAllocation(o, m.GetAllocation())
	w.endOp(o, nil)
}
