//go:build unix

package bench

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/load"
)

// sentLabel is the label of allocations of workload watch: when they were asked for, in nanoseconds since the beginning
// of the measurement.
const sentLabel = "sent"

// catchUp bounds how long the last events of a measurement may take.
const catchUp = 5 * time.Second

type fanOut struct {
	*measurement

	began   time.Time
	granted atomic.Int64 // allocations of which each watcher gets an event
	seen    []atomic.Int64
}

// beginWatch starts watchers. Callers then allocate and release, and each watcher measures the time from the call of
// Allocate to the arrival of its event.
func beginWatch(ctx context.Context, m *measurement) (load.Work, error) {
	f := &fanOut{measurement: m, began: time.Now(), seen: make([]atomic.Int64, m.options.watchers)}
	watching, stop := context.WithCancel(ctx)
	index, err := m.writeOnce(ctx, m.firstID())
	if err != nil {
		stop()
		return nil, err
	}
	var watchers sync.WaitGroup
	for i := range f.seen {
		watchers.Go(func() { f.watch(watching, i, index) })
	}
	m.atEnd = func() {
		f.awaitEvents(ctx)
		stop()
		watchers.Wait()
	}
	return f.writeAndRelease, nil
}

func (f *fanOut) writeAndRelease(ctx context.Context, it *load.Iteration) error {
	id := f.iterationID(it)
	request := f.newRequest(id, it.Caller)
	err := it.Measure("allocate", 1, func() error {
		request.Labels = map[string]string{sentLabel: strconv.FormatInt(int64(time.Since(f.began)), 10)}
		_, err := f.quorate.Allocations.Allocate(ctx, request)
		return err
	})
	if err != nil {
		return err
	}
	f.granted.Add(1)
	return it.Measure("release", 1, func() error { return f.releaseOne(ctx, id) })
}

func (f *fanOut) watch(ctx context.Context, i int, after uint64) {
	request := &quoratev1.WatchEventsRequest{Tree: f.tree, AfterIndex: after}
	err := f.quorate.Watch(ctx, request, func(event *quoratev1.WatchEventsResponse) error {
		if event.GetChange().GetKind() != quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED {
			return nil
		}
		sent, err := strconv.ParseInt(event.GetChange().GetAllocation().GetLabels()[sentLabel], 10, 64)
		if err != nil {
			return nil //nolint:nilerr // not of this measurement
		}
		f.seen[i].Add(1)
		f.generator.Record("event", 1, time.Since(f.began)-time.Duration(sent), nil)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		f.generator.Record("event", 1, 0, err)
	}
}

// errMissing is an event that did not arrive in time.
var errMissing = errors.New("an event did not arrive within " + catchUp.String() + " after the last call")

// awaitEvents waits until all watchers have received an event of each allocation. Those that are missing are errors.
func (f *fanOut) awaitEvents(ctx context.Context) {
	deadline := time.Now().Add(catchUp)
	for f.missing() > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		return
	}
	for range f.missing() {
		f.generator.Record("event", 1, catchUp, errMissing)
	}
}

func (f *fanOut) missing() int64 {
	var missing int64
	for i := range f.seen {
		missing += max(f.granted.Load()-f.seen[i].Load(), 0)
	}
	return missing
}
