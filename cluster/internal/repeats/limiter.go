// Package repeats bounds messages of libraries that log the same at every attempt.
package repeats

import (
	"sync"
	"time"
)

const (
	// interval is how often one message about one peer is logged while it repeats.
	interval = time.Minute
	// maxKeys is how many messages are remembered; with more, all begin anew.
	maxKeys = 256
)

// Limiter admits a message at once and then every minute, with the number of those that were left out. The zero value
// is ready, and it is safe for concurrent use.
type Limiter struct {
	mu   sync.Mutex
	last map[string]*repeats
}

type repeats struct {
	since   time.Time
	omitted int
}

// Admit reports whether a message is logged now, and how many with the same key were left out since the last one.
func (l *Limiter) Admit(key string) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	before := l.last[key]
	if before != nil && now.Sub(before.since) < interval {
		before.omitted++
		return 0, false
	}
	if before != nil {
		omitted = before.omitted
	}
	if l.last == nil || len(l.last) >= maxKeys {
		l.last = map[string]*repeats{}
	}
	l.last[key] = &repeats{since: now}
	return omitted, true
}
