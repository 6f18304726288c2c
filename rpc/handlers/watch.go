package handlers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

const (
	// watchHeartbeat is how long a stream is silent at most.
	watchHeartbeat = 5 * time.Second
	// watchReads is the number of events that a watcher reads at a time, watchPause the pause between two reads of the
	// feed, so that many watchers of a busy ledger cost little.
	watchReads = 256
	watchPause = 10 * time.Millisecond
	// WatchLag is how many facts a caller may fall behind: what it has not seen is remembered then for a good while yet.
	WatchLag = cluster.FeedSize / 2
)

// WatchEvents streams what happens to allocations, from the feed of this node.
func (s EventService) WatchEvents(
	ctx context.Context, r *quoratev1.WatchEventsRequest,
	stream *connect.ServerStream[quoratev1.WatchEventsResponse],
) error {
	if r.GetNode() != "" && r.GetTree() == "" {
		return wire.ToError(wire.InvalidField("node", "a node filter needs a tree too"))
	}
	named := len(r.GetAllocations()) > 0 || r.GetNamespace() != ""
	if named && slices.ContainsFunc(r.GetTopics(), isNotAllocations) {
		return wire.ToError(wire.InvalidField("topics", "only allocations have ids and namespaces; leave these out, or "+
			"watch WATCH_TOPIC_ALLOCATIONS alone"))
	}
	for i, a := range r.GetAllocations() {
		if a.GetId() == "" {
			return wire.ToError(wire.InvalidField(wire.ElementOf("allocations", i)+".id", "name the id of an allocation"))
		}
	}
	if err := s.requireWatched(ctx, r); err != nil {
		return err
	}
	w := Watcher{
		Node: s.Node, Notifier: s.Notifier, filter: newWatchFilter(r, namespaceOf(ctx)),
		Send: func(m *quoratev1.WatchEventsResponse) error {
			admission.ExtendSending(ctx, 0)
			defer admission.ExtendSending(ctx, watchHeartbeat) // until the next message there is nothing to receive
			return stream.Send(m)
		},
	}
	return w.StreamChanges(ctx, watchFrom(r))
}

// requireWatched refuses a new watch of a place that the caller does not see: it would wait for ever. A server that is
// behind may not have heard of the place yet, so it catches up before it refuses; without a leader the watch begins.
func (s EventService) requireWatched(ctx context.Context, r *quoratev1.WatchEventsRequest) error {
	if r.GetTree() == "" || r.GetAfterIndex() > 0 {
		return nil
	}
	seen := func(v ledger.Reader) error { return refusalOrNil(v.RequirePlace(r.GetTree(), r.GetNode())) }
	_, err := s.readState(ctx, &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}, seen)
	if connect.CodeOf(err) != connect.CodeNotFound {
		return err
	}
	if _, err = s.readState(ctx, &quoratev1.ReadOptions{}, seen); connect.CodeOf(err) != connect.CodeNotFound {
		return nil
	}
	return err
}

func isNotAllocations(t quoratev1.WatchTopic) bool {
	return t != quoratev1.WatchTopic_WATCH_TOPIC_ALLOCATIONS
}

// watchFrom takes an index without a number as that of a read or write, which has seen all of it.
func watchFrom(r *quoratev1.WatchEventsRequest) cluster.Position {
	switch {
	case r.GetAfterIndex() == 0:
		return cluster.LatestPosition()
	case r.GetAfterNumber() == 0:
		return cluster.PositionAfter(r.GetAfterIndex())
	}
	return cluster.Position{Index: r.GetAfterIndex(), Number: r.GetAfterNumber()}
}

// Watcher is one stream.
type Watcher struct {
	Node     Node
	Notifier *notify.Notifier
	filter   notify.Filter
	Send     func(*quoratev1.WatchEventsResponse) error
	// sent is when the last message went.
	sent time.Time
}

// StreamChanges sends changes until the caller ends the stream. A stream without a first change begins with a heartbeat
// that has its position.
func (w *Watcher) StreamChanges(ctx context.Context, from cluster.Position) error {
	news := w.Notifier.Subscribe(w.filter.Keys()...) // before the first read, or events in between would be missed
	defer news.Close()
	page, err := w.Node.ReadFeed(from, watchReads)
	if err != nil {
		return wire.ToError(err)
	}
	backlog := page.Behind
	for {
		if err := w.sendPage(ctx, page); err != nil {
			return err
		}
		if page.Behind > max(WatchLag, backlog) {
			return tooSlowError(page)
		}
		next := page.Next
		if page.Behind == 0 {
			if next, err = w.awaitNews(ctx, news, next); err != nil || ctx.Err() != nil {
				return err
			}
		}
		if page, err = w.Node.ReadFeed(next, watchReads); err != nil {
			return wire.ToError(err)
		}
	}
}

// sendPage sends a heartbeat at times if nothing concerns the caller.
func (w *Watcher) sendPage(ctx context.Context, b cluster.FeedPage) error {
	messages, err := w.messages(ctx, b.Events)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.sendMessage(m); err != nil {
			return err
		}
	}
	if time.Since(w.sent) < watchHeartbeat {
		return nil
	}
	return w.sendMessage(heartbeatMessage(b.Next, b.At))
}

// awaitNews returns where to read on when there is something to read. Until then it sends heartbeats. It also returns
// when the stream ends.
func (w *Watcher) awaitNews(
	ctx context.Context, news *notify.Subscription, next cluster.Position,
) (cluster.Position, error) {
	due := time.NewTimer(watchHeartbeat - time.Since(w.sent))
	defer due.Stop()
	for {
		select {
		case <-news.Woken():
			relay.SleepContext(ctx, watchPause)
		case <-due.C:
		case <-ctx.Done():
			return next, nil
		}
		var at quota.Instant
		var more bool
		if next, at, more = news.Advance(next); more {
			return next, nil
		}
		if err := w.sendMessage(heartbeatMessage(next, at)); err != nil {
			return next, err
		}
		due.Reset(watchHeartbeat)
	}
}

func (w *Watcher) messages(
	ctx context.Context, events []cluster.WatchEvent,
) (list []*quoratev1.WatchEventsResponse, err error) {
	events = slices.DeleteFunc(slices.Clone(events), func(n cluster.WatchEvent) bool {
		return !w.filter.Matches(&n)
	})
	if len(events) == 0 {
		return nil, nil
	}
	_, failed := w.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		if err = unprovedUnder(ctx, v.Book()); err != nil {
			return
		}
		reader, refused := v.ReaderOf(identify.CallerOf(ctx))
		if refused != nil {
			err = wire.ToError(refused)
			return
		}
		for _, n := range events {
			if m := w.shown(reader, &n); m != nil {
				list = append(list, m)
			}
		}
	})
	if failed != nil {
		return nil, wire.ToError(failed)
	}
	return list, err
}

// shown returns nil for an event that the caller may not see.
func (w *Watcher) shown(reader ledger.Reader, n *cluster.WatchEvent) *quoratev1.WatchEventsResponse {
	m := placeMessage(n)
	switch {
	case n.Crossing != nil:
		if !reader.ShownCrossing(n.Crossing) {
			return nil
		}
		m.Payload = crossingPayload(n)
	case n.Revision != nil:
		revision, seen := reader.ShownRevision(*n.Revision, w.filter.Tree, w.filter.Node)
		if !seen {
			return nil
		}
		m.Payload = &quoratev1.WatchEventsResponse_Revision{Revision: wire.FromRevision(revision)}
	case n.Event != nil:
		if !reader.ShownNodeEvent(n.Event) {
			return nil
		}
		m.Payload = eventPayload(n)
	default:
		info, seen := reader.Shown(n.Allocation)
		if !seen {
			return nil
		}
		m.Payload = changePayload(n, info)
	}
	return m
}

func (w *Watcher) sendMessage(m *quoratev1.WatchEventsResponse) error {
	w.sent = time.Now()
	return w.Send(m)
}

func heartbeatMessage(next cluster.Position, at quota.Instant) *quoratev1.WatchEventsResponse {
	message := &quoratev1.WatchEventsResponse{Index: next.Index, LedgerTimeMs: int64(at)}
	if next.Number != math.MaxUint32 { // all of that entry is sent, as if it had been read
		message.Number = next.Number
	}
	return message
}

func changePayload(n *cluster.WatchEvent, info quota.AllocationInfo) *quoratev1.WatchEventsResponse_Change {
	return &quoratev1.WatchEventsResponse_Change{Change: &quoratev1.AllocationChange{
		Kind: AllocationChanges[n.Kind], Allocation: wire.FromAllocation(info),
	}}
}

func crossingPayload(n *cluster.WatchEvent) *quoratev1.WatchEventsResponse_Crossing {
	return &quoratev1.WatchEventsResponse_Crossing{
		Crossing: wire.FromCrossing(n.Crossing, n.Kind == ledger.FactCleared),
	}
}

func eventPayload(n *cluster.WatchEvent) *quoratev1.WatchEventsResponse_Event {
	return &quoratev1.WatchEventsResponse_Event{Event: wire.FromEvent(*n.Event)}
}

// placeMessage has only the place of an event.
func placeMessage(n *cluster.WatchEvent) *quoratev1.WatchEventsResponse {
	return &quoratev1.WatchEventsResponse{Index: n.Index, Number: n.Number, LedgerTimeMs: int64(n.At)}
}

// AllocationChanges maps the kinds of events.
var AllocationChanges = map[ledger.FactKind]quoratev1.AllocationChangeKind{
	ledger.FactWaiting:   quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_WAITING,
	ledger.FactGranted:   quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED,
	ledger.FactConfirmed: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_CONFIRMED,
	ledger.FactRevoked:   quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED,
	ledger.FactEnded:     quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED,
	ledger.FactRestored:  quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESTORED,
	ledger.FactShrunk:    quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_SHRUNK,
	ledger.FactResized:   quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZED,

	ledger.FactResizeWaits:   quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_WAITING,
	ledger.FactResizeDropped: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_DROPPED,
}

// tooSlowError is for a slow caller, while the feed still has its position.
func tooSlowError(b cluster.FeedPage) error {
	return wire.NewProblem(connect.CodeResourceExhausted, fmt.Sprintf(
		"this stream is %d changes behind, because they are received too slowly; watch again after index %d and "+
			"number %d, with a filter if not all is wanted",
		b.Behind, b.Next.Index, b.Next.Number,
	), &quoratev1.Problem{Reason: "TOO_SLOW", NotApplied: true})
}

func newWatchFilter(r *quoratev1.WatchEventsRequest, own string) notify.Filter {
	f := notify.Filter{Topics: r.GetTopics(), Namespace: r.GetNamespace(), Tree: r.GetTree(), Node: r.GetNode()}
	if len(r.GetAllocations()) > 0 {
		f.IDs = map[string]bool{}
	}
	for _, a := range r.GetAllocations() {
		f.IDs[wire.ToID(a, own)] = true
	}
	return f
}
