package workload

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// watcher watches changes at one server after the other, each from where the last one stopped.
type watcher struct {
	*caller

	// kind is that of the recorded operations. tree and topics are what is watched; all allocations if empty.
	kind    history.Kind
	tree    string
	topics  []quoratev1.WatchTopic
	session int64
	request *quoratev1.WatchEventsRequest
}

func startWatch(c *caller) func(context.Context) {
	w := &watcher{caller: c, kind: history.Change}
	return w.watchOnce
}

// watchOnce watches for a while, in the present watch or a new one.
func (w *watcher) watchOnce(ctx context.Context) {
	if w.request == nil && !w.beginWatch(ctx) {
		return
	}
	w.followServer(ctx)
}

func (w *watcher) beginWatch(ctx context.Context) bool {
	read := w.readLimits(ctx, "no tree has this name", readMode{})
	if read.Outcome != history.OK {
		return false
	}
	w.session++
	w.request = &quoratev1.WatchEventsRequest{AfterIndex: read.Index, Tree: w.tree, Topics: w.topics}
	begun := w.beginOp(w.kind, w.randomServer())
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
	stream, err := s.events.WatchEvents(ctx, w.request)
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

func (w *watcher) dropForgotten(err error) {
	if connect.CodeOf(err) == connect.CodeOutOfRange {
		w.request = nil
	}
}

func (w *watcher) addChange(s *server, m *quoratev1.WatchEventsResponse) {
	w.request.AfterIndex, w.request.AfterNumber = m.GetIndex(), m.GetNumber()
	o := w.beginOp(w.kind, s)
	o.Session, o.Index, o.Position, o.Ledger = w.session, m.GetIndex(), m.GetNumber(), m.GetLedgerTimeMs()
	if w.kind == history.Crossing {
		setCrossing(o, m.GetCrossing())
		w.endOp(o, nil)
		return
	}
	if m.GetChange().GetAllocation() == nil {
		return
	}
	a := m.GetChange().GetAllocation()
	o.ID = joinName(a.GetNamespace(), a.GetId())
	o.Change = enumName(m.GetChange().GetKind().String(), "ALLOCATION_CHANGE_KIND_")
	o.Priority = a.GetPriority()
	setAllocation(o, a)
	w.endOp(o, nil)
}
