package authn

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// failureBurst is how many failed credentials an address may have at once, failureRate how many a second after
	// that.
	failureBurst = 10
	failureRate  = rate.Limit(1)
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 16_384
)

// failureLimiter limits failed credentials by address: an IPv4 address, or the /64 of an IPv6 address, because a host
// can choose any address of its /64. If there are too many addresses, it forgets the one whose last failure is the
// oldest.
type failureLimiter struct {
	mu      sync.Mutex
	entries map[netip.Prefix]*list.Element
	byAge   *list.List // of *failureEntry, the last failure first
}

type failureEntry struct {
	prefix  netip.Prefix
	limiter *rate.Limiter
}

func newFailureLimiter() *failureLimiter {
	return &failureLimiter{entries: map[netip.Prefix]*list.Element{}, byAge: list.New()}
}

// prefixOf returns what counts as one address. An address that is not valid, such as that of a pipe, counts as one.
func prefixOf(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// mayFail reports whether another failure of the address is within the rate. It does not count one.
func (l *failureLimiter) mayFail(address netip.Addr, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	element, known := l.entries[prefixOf(address)]
	return !known || entryOf(element).limiter.TokensAt(now) >= 1
}

// count counts a failure. It returns zero if the failure is within the rate, and else how long the address should wait.
func (l *failureLimiter) count(address netip.Addr, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiterOf(prefixOf(address))
	if limiter.AllowN(now, 1) {
		return 0
	}
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(missing / float64(failureRate) * float64(time.Second))
}

func (l *failureLimiter) limiterOf(prefix netip.Prefix) *rate.Limiter {
	if element, known := l.entries[prefix]; known {
		l.byAge.MoveToFront(element)
		return entryOf(element).limiter
	}
	if len(l.entries) >= maxAddresses {
		oldest := l.byAge.Back()
		delete(l.entries, entryOf(oldest).prefix)
		l.byAge.Remove(oldest)
	}
	entry := &failureEntry{prefix: prefix, limiter: rate.NewLimiter(failureRate, failureBurst)}
	l.entries[prefix] = l.byAge.PushFront(entry)
	return entry.limiter
}

func entryOf(element *list.Element) *failureEntry {
	return element.Value.(*failureEntry) //nolint:errcheck // the list has no other values
}
