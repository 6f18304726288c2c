package boskos

import (
	"sync"
	"time"
)

// mostArrivals bounds how many waiting requests a node remembers; beyond it their waiting time is measured too short.
const mostArrivals = 50_000

// arrivals remember when waiting requests came, for the metric that says how long they waited.
type arrivals struct {
	mu    sync.Mutex
	known map[string]arrival
}

type arrival struct{ since, seen time.Time }

func newArrivals() *arrivals { return &arrivals{known: map[string]arrival{}} }

// note remembers a request that waits since a time.
func (a *arrivals) note(id string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= mostArrivals {
		a.forget()
	}
	if _, known := a.known[id]; known || len(a.known) < mostArrivals {
		a.known[id] = arrival{since, time.Now()}
	}
}

// forget drops the requests that have left the queue because nobody repeated them.
func (a *arrivals) forget() {
	for id, arrived := range a.known {
		if time.Since(arrived.seen) > 2*requestTTL {
			delete(a.known, id)
		}
	}
}

// take answers since when a request waited, or else what the caller says, and forgets it.
func (a *arrivals) take(id string, otherwise time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived, known := a.known[id]
	if !known {
		return otherwise
	}
	delete(a.known, id)
	return arrived.since
}
