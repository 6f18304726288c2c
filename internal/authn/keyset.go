package authn

import (
	"context"
	"sync"
	"time"
)

const (
	// refreshInterval is how often keys are read again, and so how long a withdrawn key is believed.
	refreshInterval = 10 * time.Minute
	// retryInterval is how long after a failed read the next one begins.
	retryInterval = 30 * time.Second
	// earlyInterval is the shortest time between two reads that unknown keys cause.
	earlyInterval = 30 * time.Second
	// maxStale is how long keys are believed that cannot be read again.
	maxStale = 24 * time.Hour
	// maxKeyWait is how long a token waits for a read that is under way.
	maxKeyWait = 3 * time.Second
)

// keySet has the keys of one source and reads them again in one goroutine, so that there is never more than one read
// under way.
type keySet struct {
	read   func(context.Context) ([]byte, error)
	report func(error) // called after each read
	now    func() time.Time

	stop    context.CancelFunc
	stopped chan struct{}
	early   chan struct{} // asks the goroutine for a read; has one place

	mu        sync.Mutex
	table     *keyTable // nil until the first read
	readAt    time.Time // when the table was read
	lastErr   error     // of the last read
	lastEarly time.Time
	// pending is closed at the end of the read that is under way or was asked for; nil if there is none.
	pending chan struct{}
}

func startKeySet(read func(context.Context) ([]byte, error), report func(error), now func() time.Time) *keySet {
	ctx, cancel := context.WithCancel(context.Background())
	s := &keySet{
		read: read, report: report, now: now, stop: cancel, lastErr: errNeverRead,
		stopped: make(chan struct{}), early: make(chan struct{}, 1), pending: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

func (s *keySet) close() {
	s.stop()
	<-s.stopped
}

func (s *keySet) run(ctx context.Context) {
	defer close(s.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.endPending(true)
			return
		case <-s.early:
		case <-timer.C:
		}
		next := refreshInterval
		if err := s.readOnce(ctx); err != nil {
			next = retryInterval
		}
		timer.Reset(next)
	}
}

// readOnce reads the keys and replaces the table, so that withdrawn keys are gone. If that fails, the table stays.
func (s *keySet) readOnce(ctx context.Context) error {
	s.mu.Lock()
	if s.pending == nil {
		s.pending = make(chan struct{})
	}
	select {
	case <-s.early: // this read answers it
	default:
	}
	s.mu.Unlock()
	text, err := s.read(ctx)
	var table *keyTable
	if err == nil {
		table, err = parseKeySet(text)
	}
	s.mu.Lock()
	s.lastErr = err
	if err == nil {
		s.table, s.readAt = table, s.now()
	}
	s.mu.Unlock()
	s.endPending(false)
	if ctx.Err() == nil {
		s.report(err)
	}
	return err
}

// closedChannel is what pending is after the end: no read will come.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (s *keySet) endPending(forEver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil && s.pending != closedChannel {
		close(s.pending)
	}
	s.pending = nil
	if forEver {
		s.pending = closedChannel
	}
}

// current is nil if there are none that may be believed.
func (s *keySet) current() *keyTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil || s.now().Sub(s.readAt) > maxStale {
		return nil
	}
	return s.table
}

// awaitRead waits for the read that is under way, or asks for one if none was asked for within earlyInterval. It
// returns at once, and false, if there is nothing to wait for.
func (s *keySet) awaitRead(ctx context.Context) bool {
	done := s.requestRead()
	if done == nil {
		return false
	}
	timer := time.NewTimer(maxKeyWait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

func (s *keySet) requestRead() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		return s.pending
	}
	now := s.now()
	if !s.lastEarly.IsZero() && now.Sub(s.lastEarly) < earlyInterval {
		return nil
	}
	s.lastEarly = now
	s.pending = make(chan struct{})
	select {
	case s.early <- struct{}{}:
	default: // the goroutine was asked already and has not begun
	}
	return s.pending
}

// find returns the keys that a token may have been signed with. For an unknown key it waits for one read. The error is
// a *CredentialError.
func (s *keySet) find(ctx context.Context, id, algorithm string) ([]verifyKey, error) {
	for attempt := 0; ; attempt++ {
		table := s.current()
		if table != nil {
			if keys := table.find(id, algorithm); len(keys) > 0 {
				return keys, nil
			}
		}
		if attempt == 0 && s.awaitRead(ctx) {
			continue
		}
		if table == nil {
			return nil, refuse(KeysUnavailable, "the keys of the issuer cannot be read; try again later")
		}
		return nil, refuse(JWTKeyUnknown, "the issuer has no key for it: the kid is unknown, the key is of another "+
			"type than the algorithm, or the token names no kid and several keys fit")
	}
}

func (s *keySet) digest() (digest [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table != nil {
		digest = s.table.digest
	}
	return digest
}

// KeyStatus says how current the keys of an issuer are.
type KeyStatus struct {
	Issuer string
	// Keys counts the keys in use, Skipped those of the key set that cannot be used.
	Keys, Skipped int
	// ReadAt is when they were read; zero if never. After 24 hours they are not believed any more.
	ReadAt time.Time
	// Err is why the last read failed; nil if it succeeded.
	Err error
}

func (s *keySet) status(issuer string) KeyStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := KeyStatus{Issuer: issuer, ReadAt: s.readAt, Err: s.lastErr}
	if s.table != nil {
		status.Keys, status.Skipped = len(s.table.keys), s.table.skipped
	}
	return status
}
