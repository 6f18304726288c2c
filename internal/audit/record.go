package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"
)

// ChainName names the chain of a record.
type ChainName string

// The closed list of chains.
const (
	// Ledger is the chain that all members of the cluster have.
	Ledger ChainName = "ledger"
	// Server is the chain of one server.
	Server ChainName = "server"
)

// Kind says what a record is about. Readers must expect further kinds.
type Kind string

// Kinds of the ledger's chain.
const (
	// Configuration is a change of trees, limits, policies or the access section.
	Configuration Kind = "configuration"
	// Access is a change of accounts, tokens, refusals or the mode.
	Access Kind = "access"
	// Restore is a replacement of the whole state by a backup.
	Restore Kind = "restore"
)

// Kinds of a server's chain.
const (
	// Refusal is a call that was refused for its credential or its rights.
	Refusal Kind = "refusal"
	// Call is a call that is recorded although the ledger has no record of it: of members, backups and secrets.
	Call Kind = "call"
	// Intent is a change that a server is about to propose.
	Intent Kind = "intent"
	// Hold is a change of an allocation that the server has applied: a grant, an end, and what is between.
	Hold Kind = "hold"
	// Start is the start of the server, Gap a range of the ledger's records that this file does not have, and Loss a
	// number of records of this server that could not be written.
	Start Kind = "start"
	Gap   Kind = "gap"
	Loss  Kind = "loss"
)

// Outcome says what became of what was asked.
type Outcome string

// The closed list of outcomes.
const (
	// Applied is a change of the ledger.
	Applied Outcome = "applied"
	// Done is a call that was served.
	Done Outcome = "done"
	// Refused is a call that was refused.
	Refused Outcome = "refused"
	// Asked is an intent: whether it is applied, a record of the ledger tells.
	Asked Outcome = "asked"
	// Failed is a call that ended with another error.
	Failed Outcome = "failed"
)

// Hash is a SHA-256 hash. The zero value stands before the first record of a chain.
type Hash [sha256.Size]byte

// String is the hash in lower case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String writes.
func ParseHash(text string) (Hash, error) {
	var h Hash
	if len(text) != hex.EncodedLen(len(h)) || strings.ToLower(text) != text {
		return h, errors.New("a hash has 64 lower case hexadecimal digits")
	}
	if _, err := hex.Decode(h[:], []byte(text)); err != nil {
		return h, errors.New("a hash has 64 lower case hexadecimal digits")
	}
	return h, nil
}

// Actor is who asked.
type Actor struct {
	// Kind is account, external, anonymous or system; empty if nothing is known of the caller.
	Kind string
	// User is ISSUER/NAME; empty for anonymous callers and the system.
	User string
	// Credential tells credentials of one user apart: the id of a token, or the beginning of a hash of another credential.
	// It is not a secret.
	Credential string
	// Via is the front end that the call came through.
	Via string
}

// Change is one difference.
type Change struct {
	// Tree and Node are the place; both are empty for what belongs to the cluster.
	Tree, Node string
	// Field names what is different at the place.
	Field string
	// Before and After are texts; empty where it does not exist.
	Before, After string
}

// Record is one fact. Which fields are set depends on its kind; empty ones are not in its line.
type Record struct {
	Chain ChainName
	// Number counts the records of the chain from 1 without gaps.
	Number uint64
	// Index is the index of the log entry, and TimeMs the ledger time, in records of the ledger and of holds.
	Index  uint64
	TimeMs int64
	// WallMs is the wall time in milliseconds since 1970. That of the ledger is the time of the leader at the proposal.
	WallMs int64
	// Server is the id of the server, in records of its chain.
	Server string
	Kind   Kind
	// Action is the command or the method.
	Action string
	Actor  Actor
	// Address is where the call came from, without its port, in records of a server.
	Address string
	Outcome Outcome
	// Detail says more, for people.
	Detail string
	// Reason is what the caller gave as the reason.
	Reason string
	// Call is the id of the call, which the logs of the servers have too. RequestID is the id that the caller gave to the
	// change.
	Call, RequestID string
	// Revision is that of the configuration after the change.
	Revision uint64
	// Changes are the first of ChangeCount differences.
	Changes     []Change
	ChangeCount uint64
	// Count is the number of further calls that this record stands for.
	Count uint64
	// From and To are the first and the last number of a gap in the ledger's chain.
	From, To uint64

	// Previous is the hash of the record before in the chain, and Hash that of this one.
	Previous, Hash Hash
}

// IsAt reports whether the record changed something at a node, or below it. An empty node is the root of the tree.
func (r *Record) IsAt(tree, node string) bool {
	for _, c := range r.Changes {
		if c.Tree == tree && (node == "" || c.Node == node || strings.HasPrefix(c.Node, node+"/")) {
			return true
		}
	}
	return false
}

// Limits of the wall time in a line: from 1970 to the end of the year 9999.
const maxWall = 253402300799999

// bounded is the record with its texts, times and lists within their bounds.
func bounded(r Record) Record {
	for _, text := range []*string{
		&r.Server, &r.Action, &r.Actor.Kind, &r.Actor.User, &r.Actor.Credential, &r.Actor.Via, &r.Address, &r.Detail,
		&r.Reason, &r.Call, &r.RequestID,
	} {
		*text = Clip(*text)
	}
	r.WallMs = min(max(r.WallMs, 0), maxWall)
	r.ChangeCount = max(r.ChangeCount, uint64(len(r.Changes)))
	r.Changes = boundedChanges(r.Changes)
	return r
}

func boundedChanges(list []Change) []Change {
	var kept []Change
	size := 0
	for _, c := range list[:min(len(list), MaxChanges)] {
		c = Change{Clip(c.Tree), Clip(c.Node), Clip(c.Field), Clip(c.Before), Clip(c.After)}
		if size += len(appendChange(nil, c)) + 1; size > MaxChangeBytes {
			break
		}
		kept = append(kept, c)
	}
	return kept
}

// Clip cuts a text to MaxText bytes, at the end of a character, and replaces bytes that are not UTF-8.
func Clip(text string) string {
	const ellipsis = "…"
	if text = strings.ToValidUTF8(text, "\uFFFD"); len(text) <= MaxText {
		return text
	}
	end := MaxText - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
