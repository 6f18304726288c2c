package workload

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// watcher follows all changes, one server after the other, and goes on with the next where the last one stopped.
type watcher struct {
	*caller

	session int64
	request *quoratev1.WatchAllocationsRequest
}

func startWatch(c *caller) func(context.Context) {
	w := &watcher{caller: c}
	return func(ctx context.Context) {
		if w.request == nil && !w.settle(ctx) {
			return
		}
		w.follow(ctx)
	}
}

// settle begins a new watch behind a state that it has read.
func (w *watcher) settle(ctx context.Context) bool {
	read := w.readLimits(ctx, "no tree has this name", freshness{})
	if read.Outcome != history.OK {
		return false
	}
	w.session++
	w.request = &quoratev1.WatchAllocationsRequest{AfterIndex: read.Index}
	begun := w.begin(history.Change, w.server())
	begun.Session, begun.Index, begun.Change = w.session, read.Index, history.WatchBegins
	w.end(begun, nil)
	return true
}

// follow watches one server until it breaks off, or for a while: whoever resumes often finds what resuming loses.
func (w *watcher) follow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 50*w.config.Pause+time.Duration(w.random.Int64N(int64(300*w.config.Pause))))
	defer cancel()
	s := w.server()
	stream, err := s.allocations.WatchAllocations(ctx, w.request)
	if err != nil {
		w.forgotten(err)
		return
	}
	for stream.Receive() {
		w.note(s, stream.Msg())
	}
	w.forgotten(stream.Err())
	_ = stream.Close() // it is over
}

// forgotten gives a position up that the server does not remember.
func (w *watcher) forgotten(err error) {
	if connect.CodeOf(err) == connect.CodeOutOfRange {
		w.request = nil
	}
}

func (w *watcher) note(s *server, m *quoratev1.WatchAllocationsResponse) {
	w.request.AfterIndex, w.request.AfterNumber = m.GetIndex(), m.GetNumber()
	if m.GetAllocation() == nil {
		return
	}
	o := w.begin(history.Change, s)
	o.Session, o.Index, o.Within, o.Ledger = w.session, m.GetIndex(), m.GetNumber(), m.GetLedgerTimeMs()
	o.ID, o.Change = m.GetAllocation().GetId(), bare(m.GetChange().String(), "ALLOCATION_CHANGE_")
	o.Priority = m.GetAllocation().GetPriority()
	shown(o, m.GetAllocation())
	w.end(o, nil)
}
