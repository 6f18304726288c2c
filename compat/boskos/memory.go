package boskos

import (
	"sync"
	"time"
)

// mostArrivals bounds how many waiting requests a node keeps; beyond it, measured waiting times are too short.
const mostArrivals = 50_000

// arrivalTimes are when waiting requests arrived, for the metric of waiting times.
type arrivalTimes struct {
	mu    sync.Mutex
	known map[string]arrival
}

type arrival struct{ since, seen time.Time }

func newArrivalTimes() *arrivalTimes { return &arrivalTimes{known: map[string]arrival{}} }

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

// takeArrival removes the time when a request arrived, and returns it, or otherwise if there is none.
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

// mostRemembered bounds how many grants a node keeps; the ledger has no more items.
const mostRemembered = 100_000

// grantMemory maps an item and its owner to the allocation, from the grant to the release. If both calls reach this
// node, the release does not have to read the item first. An entry may be outdated, so the release falls back to
// reading.
type grantMemory struct {
	mu  sync.Mutex
	ids map[holding]string
}

type holding struct{ name, owner string }

func newGrantMemory() *grantMemory { return &grantMemory{ids: map[holding]string{}} }

func (m *grantMemory) noteGrant(h holding, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ids) >= mostRemembered {
		clear(m.ids) // later releases read the item
	}
	m.ids[h] = id
}

// takeGrant removes the entry; the id is empty if it is not known.
func (m *grantMemory) takeGrant(h holding) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.ids[h]
	delete(m.ids, h)
	return id
}
