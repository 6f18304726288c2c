package gate

import (
	"maps"
	"slices"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type record struct {
	key        string
	attempt    int
	index      uint64 // of the answer or the change that says so
	allocation *quoratev1.Allocation
	// until is when it ends if it was revoked.
	until time.Time
	// kept is when the request was last repeated or the lease renewed; zero if not by this process.
	kept time.Time
}

// book has the latest state of all allocations of the adapter. Answers and watched changes reach it in any order: for
// each id the one with the higher index counts.
type book struct {
	prefix   string
	identity map[string]string

	mu      sync.Mutex
	now     func() time.Time
	records map[string]*record            // by id
	keys    map[string]map[string]*record // by key and id
}

func newBook(prefix string, identity map[string]string) *book {
	return &book{
		prefix: prefix, identity: identity, now: time.Now,
		records: map[string]*record{}, keys: map[string]map[string]*record{},
	}
}

// note records what an answer or a change says of an allocation. It reports whether that is news.
func (b *book) note(a *quoratev1.Allocation, index uint64, ledgerMS int64) bool {
	key, attempt, ours := parseID(b.prefix, a.GetId())
	if !ours || !b.isOurs(a) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.records[a.GetId()]
	if known != nil && (known.index > index || known.index == index && rank(known.allocation) > rank(a)) {
		return false
	}
	r := &record{key: key, attempt: attempt, index: index, allocation: a}
	// A lease that was granted from the queue must be claimed by a renewal, so its grant starts again.
	if known != nil && (rank(known.allocation) > 0 || rank(a) == 0) {
		r.kept = known.kept
	}
	if a.GetRevokedBy() != nil {
		r.until = b.now().Add(time.Duration(a.GetExpiresLedgerMs()-ledgerMS) * time.Millisecond)
	}
	b.put(r)
	return known == nil || rank(known.allocation) != rank(a)
}

// isOurs reports whether an allocation has the labels of this adapter. Another adapter may have the same prefix by
// mistake; its allocations are left alone.
func (b *book) isOurs(a *quoratev1.Allocation) bool {
	for name, value := range b.identity {
		if a.GetLabels()[name] != value {
			return false
		}
	}
	return true
}

func (b *book) put(r *record) {
	id := r.allocation.GetId()
	b.records[id] = r
	if b.keys[r.key] == nil {
		b.keys[r.key] = map[string]*record{}
	}
	b.keys[r.key][id] = r
}

func (b *book) remove(r *record) {
	id := r.allocation.GetId()
	delete(b.records, id)
	delete(b.keys[r.key], id)
	if len(b.keys[r.key]) == 0 {
		delete(b.keys, r.key)
	}
}

// rank orders the states of an allocation in which one index may show it: it only moves forward.
func rank(a *quoratev1.Allocation) int {
	switch a.GetState() {
	case quoratev1.AllocationState_ALLOCATION_STATE_WAITING:
		return 0
	case quoratev1.AllocationState_ALLOCATION_STATE_HELD, quoratev1.AllocationState_ALLOCATION_STATE_RESERVED:
		if a.GetRevokedBy() != nil {
			return 2
		}
		return 1
	case quoratev1.AllocationState_ALLOCATION_STATE_UNSPECIFIED, quoratev1.AllocationState_ALLOCATION_STATE_RELEASED,
		quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED, quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED,
		quoratev1.AllocationState_ALLOCATION_STATE_CANCELLED, quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT,
		quoratev1.AllocationState_ALLOCATION_STATE_ABANDONED:
	}
	return endedRank
}

const endedRank = 3

// forget drops the record of an id that the servers do not know.
func (b *book) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.records[id]; r != nil {
		b.remove(r)
	}
}

// markKept notes that a request was repeated or a lease renewed now.
func (b *book) markKept(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.records[id]; r != nil {
		r.kept = b.now()
	}
}

// keptAt also returns the time to live of the allocation.
func (b *book) keptAt(id string) (time.Time, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[id]
	if r == nil {
		return time.Time{}, 0
	}
	return r.kept, time.Duration(r.allocation.GetTtlMs()) * time.Millisecond
}

// retainListed drops what was known at an index and was not listed then: it has ended and was forgotten.
func (b *book) retainListed(listed map[string]bool, index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.records {
		if !listed[id] && r.index <= index {
			b.remove(r)
		}
	}
}

// grants returns the allocations of a work that have not ended.
func (b *book) grants(key string) []Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	var grants []Grant
	for id, r := range b.keys[key] {
		if rank(r.allocation) == endedRank {
			continue
		}
		g := Grant{ID: id, Until: r.until, Claims: claimsOf(r.allocation), attempt: r.attempt, State: Held}
		switch rank(r.allocation) {
		case 0:
			g.State = Waiting
		case 2:
			g.State = Revoked
		}
		grants = append(grants, g)
	}
	return grants
}

// liveKeys returns the keys of all works that have allocations, with the labels of one of them.
func (b *book) liveKeys() map[string]map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := map[string]map[string]string{}
	for _, r := range b.records {
		if rank(r.allocation) != endedRank {
			live[r.key] = maps.Clone(r.allocation.GetLabels())
		}
	}
	return live
}

// lastAttempt returns the highest attempt of a work that this process knows; 0 if none.
func (b *book) lastAttempt(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	attempts := []int{0}
	for r := range maps.Values(b.keys[key]) {
		attempts = append(attempts, r.attempt)
	}
	return slices.Max(attempts)
}

func claimsOf(a *quoratev1.Allocation) []Claim {
	var claims []Claim
	for _, c := range a.GetClaims() {
		claims = append(claims, Claim{c.GetTree(), c.GetNode(), c.GetAmounts()})
	}
	return claims
}
