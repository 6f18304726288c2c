package gate

import (
	"context"
	"fmt"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Loop keeps the gates of a source and the allocations of a cluster in agreement. One loop at a time may run for a
// prefix.
type Loop struct {
	settings Settings
	source   Source
	quorate  Quorate
	book     *book
	now      func() time.Time
	changed  chan struct{}

	mu    sync.Mutex
	paces map[string]*pace // by key of the work
}

// pace is when a work is handled again after a failure, and what users were told of it.
type pace struct {
	failures int
	next     time.Time
	lastTold Status
}

// New returns a loop that has not begun.
func New(settings Settings, source Source, quorate Quorate) (*Loop, error) {
	settings, err := settings.complete()
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return &Loop{
		settings: settings, source: source, quorate: quorate, book: newBook(settings.Prefix, settings.Identity),
		now: time.Now, changed: make(chan struct{}, 1), paces: map[string]*pace{},
	}, nil
}

// Notify tells the loop that the work in the scheduler has changed. It does not block.
func (l *Loop) Notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run compares both sides, follows both, and acts, until the context ends. Failures are logged and tried again.
func (l *Loop) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		index, err := l.resync(ctx)
		if err != nil {
			failures++
			l.settings.Log.Warn("cannot read the allocations; nothing is opened until that succeeds", "error", err)
			l.tellUnavailable(ctx, err)
			sleep(ctx, pauseAfter(failures))
			continue
		}
		failures = 0
		began := time.Now()
		l.follow(ctx, index)
		sleep(ctx, time.Second-time.Since(began)) // a watch that is refused at once must not cause lists without a pause
	}
	return context.Cause(ctx)
}

// follow acts on changes until both sides must be compared again.
func (l *Loop) follow(ctx context.Context, index uint64) {
	watching, cancel := context.WithTimeout(ctx, l.settings.Resync)
	defer cancel()
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		defer cancel() // the changes after the last one are lost
		err := l.quorate.Watch(watching, &quoratev1.WatchEventsRequest{AfterIndex: index}, l.noteChange)
		if watching.Err() == nil {
			l.settings.Log.Warn("the watch of allocations has ended; the allocations are listed again", "error", err)
		}
	})
	for watching.Err() == nil {
		next := l.pass(watching)
		timer := time.NewTimer(next)
		select {
		case <-l.changed:
			sleep(watching, coalescePause)
		case <-timer.C:
		case <-watching.Done():
		}
		timer.Stop()
	}
}

func (l *Loop) noteChange(m *quoratev1.WatchEventsResponse) error {
	if a := m.GetChange().GetAllocation(); a != nil && l.book.note(a, m.GetIndex(), m.GetLedgerTimeMs()) {
		l.Notify()
	}
	return nil
}

// resync lists all allocations of the adapter, and returns the index to watch from. Waiting ones are listed first: they
// may be granted meanwhile, and held ones never wait again.
func (l *Loop) resync(ctx context.Context) (uint64, error) {
	listed, first := map[string]bool{}, uint64(0)
	note := func(a *quoratev1.Allocation, read *quoratev1.ReadInfo) {
		if first == 0 {
			first = read.GetIndex()
		}
		if a != nil {
			listed[a.GetId()] = true
			l.book.note(a, read.GetIndex(), read.GetLedgerTimeMs())
		}
	}
	for token := ""; ; {
		page, err := withPatience(ctx, &quoratev1.ListWaitingRequest{PageSize: 1000, PageToken: token},
			l.quorate.ListWaiting)
		if err != nil {
			return 0, fmt.Errorf("listing waiting requests: %w", err)
		}
		note(nil, page.GetRead())
		for _, r := range page.GetRequests() {
			note(r.GetAllocation(), page.GetRead())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	for token := ""; ; {
		page, err := withPatience(ctx, &quoratev1.ListAllocationsRequest{
			PageSize: 1000, PageToken: token, IdPrefix: l.settings.Prefix + "/", Labels: l.settings.Identity,
		}, l.quorate.ListAllocations)
		if err != nil {
			return 0, fmt.Errorf("listing allocations: %w", err)
		}
		for _, a := range page.GetAllocations() {
			note(a, page.GetRead())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	l.book.retainListed(listed, first)
	return first, nil
}

// withPatience makes a call that may take as long as any other. A client retries until the deadline.
func withPatience[Q, A any](ctx context.Context, q Q, call func(context.Context, Q) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return call(ctx, q)
}

// pass decides and acts once for every work and every allocation, and returns when the next pass is due.
func (l *Loop) pass(ctx context.Context) time.Duration {
	listing, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	works, err := l.source.List(listing)
	if err != nil {
		if ctx.Err() == nil {
			l.settings.Log.Warn("cannot list the work of the scheduler", "error", err)
		}
		return firstPause
	}
	known := map[string]bool{}
	for i := range works {
		known[works[i].Key] = true
	}
	live := l.book.liveKeys()
	var running sync.WaitGroup
	places := make(chan struct{}, l.settings.Parallel)
	start := func(key string, handle func(context.Context) error) {
		if wait := l.paceOf(key).next.Sub(l.now()); wait > 0 || ctx.Err() != nil {
			return
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			l.setPace(ctx, key, handle(ctx))
		})
	}
	for i := range works {
		start(works[i].Key, func(ctx context.Context) error { return l.handleWork(ctx, &works[i]) })
	}
	for key, labels := range live {
		if !known[key] {
			start(key, func(ctx context.Context) error { return l.releaseUnlisted(ctx, key, labels) })
		}
	}
	running.Wait()
	return l.nextPass(known)
}

// nextPass returns how long nothing is due, and drops the pace of work that is gone.
func (l *Loop) nextPass(known map[string]bool) time.Duration {
	live := l.book.liveKeys()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := min(l.settings.Refresh, l.settings.Resync) / 4
	for key, p := range l.paces {
		switch wait := p.next.Sub(l.now()); {
		case !known[key] && live[key] == nil:
			delete(l.paces, key)
		case p.failures > 0 || wait > 0:
			next = min(next, max(wait, 10*time.Millisecond))
		}
	}
	return next
}

func (l *Loop) paceOf(key string) pace {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.paces[key]; p != nil {
		return *p
	}
	return pace{}
}

func (l *Loop) setPace(ctx context.Context, key string, err error) {
	l.changePace(key, func(p *pace) {
		if err == nil {
			p.failures = 0
			return
		}
		p.failures++
		p.next = l.now().Add(pauseAfter(p.failures))
		if ctx.Err() == nil {
			l.settings.Log.Warn("work is tried again", "key", key, "in", pauseAfter(p.failures), "error", err)
		}
	})
}

func (l *Loop) changePace(key string, change func(*pace)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paces[key] == nil {
		l.paces[key] = &pace{}
	}
	change(l.paces[key])
}

func pauseAfter(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), mostPause)
}

func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
