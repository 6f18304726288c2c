package ledger

import "github.com/quorate/quorate/quota"

// beginHolding starts the TTL of a lease, and the declared time, of an allocation that is granted or confirmed.
func (m *details) beginHolding(now quota.Stamp) {
	if m.lease != nil {
		m.lease.begin(now)
	}
	if m.declared > 0 {
		m.endsAt = now.At + quota.Instant(m.declared)
	}
}

// declaredEnd is when a held allocation ends because its declared time is over; 0 if it declared none.
func (a *Allocation) declaredEnd() quota.Instant {
	if a.more == nil {
		return 0
	}
	return a.more.endsAt
}

// expiresAt is when a held allocation ends, unless it is a lease and is renewed; 0 for never.
func (a *Allocation) expiresAt() quota.Instant {
	if a.endsAsDeclared() {
		return a.declaredEnd()
	}
	return a.lease().expires
}

// endsAsDeclared is true if the declared time of an allocation is over no later than its lease.
func (a *Allocation) endsAsDeclared() bool {
	end, expires := a.declaredEnd(), a.lease().expires
	return end != 0 && (expires == 0 || end <= expires)
}
