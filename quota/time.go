package quota

// Instant is a point of ledger time: milliseconds since the cluster was formed. The leader assigns it to every log
// entry; it never decreases (docs/consistency.md, "Time").
type Instant int64

// Span is a duration of ledger time in milliseconds.
type Span int64

// Stamp is the time of one log entry.
type Stamp struct {
	// At is ledger time; the ledger takes max(now, At).
	At Instant
	// Wall is the leader's wall clock in milliseconds since 1970. Rights that end with time go by it; no other decision
	// depends on it.
	Wall int64
}
