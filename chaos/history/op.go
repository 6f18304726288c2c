// Package history records what clients of a cluster requested, when, and what they were answered.
//
// It does not depend on the server: an operation is what a client can know. Histories are files of JSON lines, one
// operation each, so that a run can be judged again.
package history

import (
	"maps"
	"slices"
)

// Kind says what an operation requested.
type Kind string

// All kinds.
const (
	Allocate Kind = "allocate"
	Renew    Kind = "renew"
	Release  Kind = "release"
	Confirm  Kind = "confirm"
	Cancel   Kind = "cancel"
	// Resize, Transfer and Split have in Claims everything that the allocation shall hold afterwards. Records is the
	// allocation as the answer shows it and, after a Split, its parts.
	Resize         Kind = "resize"
	Transfer       Kind = "transfer"
	Split          Kind = "split"
	Configure      Kind = "configure"       // SetLimits, ApplyTrees or a hold; Limits are those requested
	ReadUsage      Kind = "read-usage"      // Usage is what it read
	ReadAllocation Kind = "read-allocation" // Records has one allocation
	ListHeld       Kind = "list-held"       // Records has all allocations of one tree at one index
	ListWaiting    Kind = "list-waiting"    // Records is in queue order
	ReadLimits     Kind = "read-limits"     // Limits is what it read
	// Schedule has in Scheduled the one limit that it schedules, whose id is in ID too. ReadSchedule has those that the
	// cluster shows.
	Schedule     Kind = "schedule"
	ReadSchedule Kind = "read-schedule"
	// Change is one message of a watch. The first operation of a watch has the change WatchBegins and the position
	// after which the watch begins. A watch that resumes at another server keeps its session.
	Change Kind = "change"
	// Crossing is one message of a watch of thresholds, as Change is: Change is CROSSED, CLEARED or, for a heartbeat,
	// empty. Percents has the threshold and Usage what was used.
	Crossing Kind = "crossing"
	// BoskosAcquire has the item in Claims and the owner in ID, and so have the other calls of Boskos front ends.
	BoskosAcquire Kind = "boskos-acquire"
	BoskosRelease Kind = "boskos-release"
	BoskosUpdate  Kind = "boskos-update"
)

// WatchBegins is the change of the first operation of a watch.
const WatchBegins = "BEGINS"

// Changes of a Crossing.
const (
	Crossed = "CROSSED"
	Cleared = "CLEARED"
)

// Outcome says how a call ended.
type Outcome string

// All outcomes.
const (
	// OK: the call was executed or, with MODE_WAIT, the request waits.
	OK Outcome = "ok"
	// Refused: the ledger decided the call and changed nothing. Reason has the reason.
	Refused Outcome = "refused"
	// Failed calls were certainly not carried out.
	Failed Outcome = "failed"
	// Unknown calls may have been carried out, or may still be, at most once.
	Unknown Outcome = "unknown"
)

// Cordon is the kind of a violation by a hold.
const Cordon = "CORDON"

// Denied is the reason of a refusal because of limits. All other reasons are those of the API, such as ENDED.
const Denied = "DENIED"

// States of allocations as the API names them, without the prefix.
const (
	Held      = "HELD"
	Reserved  = "RESERVED"
	Waiting   = "WAITING"
	Released  = "RELEASED"
	Expired   = "EXPIRED"
	Cancelled = "CANCELLED"
	TimedOut  = "TIMED_OUT"
	Abandoned = "ABANDONED"
)

// Modes of Allocate as the API names them, without the prefix.
const (
	Reject  = ""
	Reserve = "RESERVE"
	Wait    = "WAIT"
)

// Claim is what is requested or held at one node.
type Claim struct {
	Tree    string           `json:"tree"`
	Node    string           `json:"node,omitempty"`
	Amounts map[string]int64 `json:"amounts,omitempty"`
	// Items are the held items as "resource/name". In a request, Pick is the resource of which one item is wanted.
	Items []string `json:"items,omitempty"`
	Pick  string   `json:"pick,omitempty"`
	// Steps, in a request, is how often Step may be added to all amounts of the claim: as often as it fits, and equally
	// often in all claims of the request.
	Step  int64 `json:"step,omitempty"`
	Steps int64 `json:"steps,omitempty"`
}

// Widened returns claims with some steps added to their amounts.
func Widened(claims []Claim, steps int64) []Claim {
	all := slices.Clone(claims)
	for i, c := range all {
		all[i].Step, all[i].Steps, all[i].Amounts = 0, 0, maps.Clone(c.Amounts)
		for resource := range c.Amounts {
			all[i].Amounts[resource] += steps * c.Step
		}
	}
	return all
}

// Violation is one limit that a denial names.
type Violation struct {
	Tree      string `json:"tree"`
	Node      string `json:"node,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Requested int64  `json:"requested"`
	Missing   int64  `json:"missing"`
	// Alternative is the number of the alternative that would break the limit; 0 if the request has none.
	Alternative int `json:"alternative,omitempty"`
}

// OnHold is the resource of the limit that a hold is in histories: 0 while the node is on hold, Unlimited once it is
// resumed. Everything that is held counts.
const OnHold = "(on hold)"

// Limit is what one node may hold of one resource.
type Limit struct {
	Tree     string `json:"tree"`
	Node     string `json:"node,omitempty"`
	Resource string `json:"resource"`
	Amount   int64  `json:"amount"`
	// Advises is the amount of an advisory limit, of which Amount is Unlimited: it denies nothing.
	Advises int64 `json:"advises,omitempty"`
}

// ScheduledLimit sets a limit of one node for a while. From and Until are civil times, in milliseconds since 1970.
type ScheduledLimit struct {
	Limit

	ID      string `json:"id"`
	From    int64  `json:"from"`
	Until   int64  `json:"until"`
	InForce bool   `json:"in_force,omitempty"`
}

// Usage is the usage of one resource at one node. Limit is the limit in force, or Unlimited.
type Usage struct {
	Tree     string `json:"tree"`
	Node     string `json:"node,omitempty"`
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Own      int64  `json:"own,omitempty"`
	Limit    int64  `json:"limit"`
	Over     int64  `json:"over,omitempty"`
}

// Unlimited stands for a missing limit.
const Unlimited = -1

// Record is an allocation as a read shows it. Expires is a ledger time: the end of a lease or reservation, or for a
// waiting request the time at which it stops waiting.
type Record struct {
	ID       string  `json:"id"`
	State    string  `json:"state"`
	Fence    uint64  `json:"fence,omitempty"`
	Claims   []Claim `json:"claims,omitempty"`
	Expires  int64   `json:"expires,omitempty"`
	Priority int64   `json:"priority,omitempty"`
	// Place is the position of a waiting request in its queue, from 1.
	Place int64 `json:"place,omitempty"`
	// Generation is that of the last change of what is held.
	Generation uint64 `json:"generation,omitempty"`
	// Alternative is the number of the alternative that was granted, from 1; 0 if there is none.
	Alternative int `json:"alternative,omitempty"`
}

// Part is an allocation that a Split wants to make.
type Part struct {
	ID     string  `json:"id"`
	Claims []Claim `json:"claims"`
}

// Op is one call with its answer, or one message of a watch.
type Op struct {
	// Number counts operations in the order in which they were recorded, from 1.
	Number int64 `json:"n"`
	// Workload and Client identify the client, which makes one call at a time.
	Workload string `json:"workload"`
	Client   int    `json:"client"`
	Kind     Kind   `json:"kind"`
	// Call and Return are nanoseconds since the recorder began, by its monotonic clock.
	Call    int64   `json:"call"`
	Return  int64   `json:"return"`
	Outcome Outcome `json:"outcome"`
	// Reason is the reason of a refusal; for Failed and Unknown it is the error.
	Reason string `json:"reason,omitempty"`
	// Server is the address that was called.
	Server string `json:"server,omitempty"`

	// ID is the id of the allocation, or the request id of a change of configuration.
	ID     string  `json:"id,omitempty"`
	Claims []Claim `json:"claims,omitempty"`
	// Mode is that of an Allocate, or Wait for a Resize that waits if it does not fit.
	Mode     string `json:"mode,omitempty"`
	Priority int64  `json:"priority,omitempty"`
	// Generation is that which a Resize, Transfer or Split names, else that which the answer shows. All calls that name
	// one generation of an allocation want the same.
	Generation uint64 `json:"generation,omitempty"`
	// AnyOf are the alternatives of an Allocate, of which Claims is the first. Alternative is the number of the one
	// that the answer shows as granted.
	AnyOf       [][]Claim `json:"any_of,omitempty"`
	Alternative int       `json:"alternative,omitempty"`
	// Parts are the allocations that a Split wants to make.
	Parts []Part `json:"parts,omitempty"`
	// TTL is the TTL of a lease or the time of a reservation, in milliseconds.
	TTL int64 `json:"ttl,omitempty"`
	// For is how long an Allocate declares to hold at most, in milliseconds from the grant; 0 if it declares no end. It
	// has no TTL then.
	For int64 `json:"for,omitempty"`
	// Session links the requests of one batch, or the messages of one watch.
	Session int64 `json:"session,omitempty"`

	// Index is the log index of the answer: that of the entry that decided it, or a later one if Repeated. Denials by
	// v0.4.0 have none.
	Index uint64 `json:"index,omitempty"`
	// Position is the number of a change within its index.
	Position uint32 `json:"within,omitempty"`
	// Fence, State and Granted describe the allocation in the answer; Granted is what it holds.
	Fence   uint64  `json:"fence,omitempty"`
	State   string  `json:"state,omitempty"`
	Granted []Claim `json:"got,omitempty"`
	// Repeated is true if the call had taken effect at an earlier attempt.
	Repeated bool `json:"repeated,omitempty"`
	// Change is the change that a watch reported.
	Change string `json:"change,omitempty"`
	// Ledger is the ledger time of Index and Expires that of the end, in milliseconds; 0 if the answer does not tell.
	Ledger     int64       `json:"ledger,omitempty"`
	Expires    int64       `json:"expires,omitempty"`
	Violations []Violation `json:"violations,omitempty"`

	// Stale says that a stale read was requested, MarkedStale that the answer says so too.
	Stale       bool `json:"stale,omitempty"`
	MarkedStale bool `json:"marked,omitempty"`
	// MinIndex is the index that the read insisted on.
	MinIndex uint64   `json:"least,omitempty"`
	ServedBy string   `json:"served_by,omitempty"`
	Age      int64    `json:"age,omitempty"`
	Records  []Record `json:"records,omitempty"`
	Usage    []Usage  `json:"usage,omitempty"`
	Limits   []Limit  `json:"limits,omitempty"`
	Revision uint64   `json:"revision,omitempty"`

	// Percents and Margin are the thresholds that a Configure gives to all nodes of its tree.
	Percents []int64 `json:"percents,omitempty"`
	Margin   int64   `json:"margin,omitempty"`

	// Scheduled are scheduled limits in the order in which they were made, and Civil is civil time at Index; 0 if the
	// cluster has not agreed on it. Wall is when the call returned by the wall clock of the client, which is right. Times
	// are milliseconds since 1970.
	Scheduled []ScheduledLimit `json:"scheduled,omitempty"`
	Civil     int64            `json:"civil,omitempty"`
	Wall      int64            `json:"wall,omitempty"`
}

// IsRead reports whether the operation only reads.
func (o *Op) IsRead() bool {
	return slices.Contains([]Kind{ReadUsage, ReadAllocation, ListHeld, ListWaiting, ReadLimits, ReadSchedule}, o.Kind)
}

// IsWatched reports whether the operation is a message of a watch.
func (o *Op) IsWatched() bool { return o.Kind == Change || o.Kind == Crossing }

// ChangesHolding reports whether the operation changes what an allocation holds.
func (o *Op) ChangesHolding() bool { return slices.Contains([]Kind{Resize, Transfer, Split}, o.Kind) }

// ResizeWaits reports whether the operation is a resize that waits if it does not fit. It may be carried out later than
// it is answered, or never.
func (o *Op) ResizeWaits() bool { return o.Kind == Resize && o.Mode == Wait }

// ClaimsOf returns the claims of an alternative by its number, or those of a request without.
func (o *Op) ClaimsOf(alternative int) []Claim {
	if alternative < 1 || alternative > len(o.AnyOf) {
		return o.Claims
	}
	return o.AnyOf[alternative-1]
}
