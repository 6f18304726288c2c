package boskos

import (
	"sync"
	"time"
)

// mostArrivals bounds how many waiting requests a node remembers; beyond it their waiting time is measured too short.
const mostArrivals = 50_000

// arrivalTimes remember when waiting requests came, for the metric that says how long they waited.
type arrivalTimes struct {
	mu    sync.Mutex
	known map[string]arrival
}

type arrival struct{ since, seen time.Time }

func newArrivalTimes() *arrivalTimes { return &arrivalTimes{known: map[string]arrival{}} }

// noteArrival remembers a request that waits since a time.
func (a *arrivalTimes) noteArrival(id string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= mostArrivals {
		a.dropStale()
	}
	if _, known := a.known[id]; known || len(a.known) < mostArrivals {
		a.known[id] = arrival{since, time.Now()}
	}
}

// dropStale drops the requests that left the queue because they were not repeated.
func (a *arrivalTimes) dropStale() {
	for id, arrived := range a.known {
		if time.Since(arrived.seen) > 2*requestTTL {
			delete(a.known, id)
		}
	}
}

// takeArrival answers since when a request waited, or else what the caller says, and forgets it.
func (a *arrivalTimes) takeArrival(id string, otherwise time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived, known := a.known[id]
	if !known {
		return otherwise
	}
	delete(a.known, id)
	return arrived.since
}

// mostRemembered bounds how many grants a node remembers; the ledger has no more items.
const mostRemembered = 100_000

// grantMemory remembers which allocation an owner got an item by, from the grant to the release, as far as both came to this
// node: then the release can do without a look at the item. What it says may be outdated, and is only tried.
type grantMemory struct {
	mu  sync.Mutex
	ids map[holding]string
}

// holding is an item with an owner.
type holding struct{ name, owner string }

func newGrantMemory() *grantMemory { return &grantMemory{ids: map[holding]string{}} }

func (m *grantMemory) noteGrant(h holding, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ids) >= mostRemembered {
		clear(m.ids) // those who hold something for so long can wait for a look
	}
	m.ids[h] = id
}

// takeGrant answers the id once; empty if it is not known.
func (m *grantMemory) takeGrant(h holding) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.ids[h]
	delete(m.ids, h)
	return id
}
