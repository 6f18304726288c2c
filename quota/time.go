package quota

// Instant is a point of ledger time: milliseconds since the cluster was formed. The leader assigns it to every log
// entry; it never decreases (docs/consistency.md, "Time").
type Instant int64

// Span is a duration of ledger time in milliseconds.
type Span int64

// CivilTime is a point of civil time: milliseconds since 1970, as the members have agreed on it in the log. 0 means
// that they have not agreed yet.
//
// It is ledger time plus an offset (SetCivilOffset) and never decreases. Only what people have planned for a date goes
// by it. Leases, reservations and waiting go by ledger time, which no wall clock can move.
type CivilTime int64

// Stamp is the time of one log entry.
type Stamp struct {
	// At is ledger time; the ledger takes max(now, At).
	At Instant
	// Wall is the leader's wall clock in milliseconds since 1970. Rights that end with time go by it; no other decision
	// depends on it.
	Wall int64
}
