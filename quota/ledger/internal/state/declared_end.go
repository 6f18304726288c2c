package state

import "github.com/quorate/quorate/quota"

// BeginHolding starts the TTL of a lease, and the declared time, of an allocation that is granted or confirmed.
func (m *Details) BeginHolding(now quota.Stamp) {
	if m.Lease != nil {
		m.Lease.Begin(now)
	}
	if m.Declared > 0 {
		m.EndsAt = now.At + quota.Instant(m.Declared)
	}
}

// declaredEnd is when a held allocation ends because its declared time is over; 0 if it declared none.
func (a *Allocation) declaredEnd() quota.Instant {
	if a.More == nil {
		return 0
	}
	return a.More.EndsAt
}

// expiresAt is when a held allocation ends, unless it is a lease and is renewed; 0 for never.
func (a *Allocation) expiresAt() quota.Instant {
	if a.EndsAsDeclared() {
		return a.declaredEnd()
	}
	return a.Lease().Expires
}

// EndsAsDeclared is true if the declared time of an allocation is over no later than its lease.
func (a *Allocation) EndsAsDeclared() bool {
	end, expires := a.declaredEnd(), a.Lease().Expires
	return end != 0 && (expires == 0 || end <= expires)
}
