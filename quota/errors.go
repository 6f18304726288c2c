package quota

import (
	"fmt"

	"github.com/quorate/quorate/internal/access"
)

// Kind is the reason for refusing a command. The list is closed; package rpc maps each kind to one code.
type Kind uint8

// The closed list of kinds.
const (
	// Invalid: the command is malformed, whatever the state.
	Invalid Kind = iota + 1
	// NotFound: the command names a tree, node, resource or allocation that does not exist.
	NotFound
	// IDTaken: the id belongs to another request.
	IDTaken
	// Ended: the allocation with that id has ended.
	Ended
	// RevisionMismatch: the configuration revision is not the expected one.
	RevisionMismatch
	// PolicyBreach: a policy forbids the result.
	PolicyBreach
	// InUse: the object to remove is still held.
	InUse
	// Full: a declared bound of the ledger is reached.
	Full
	// Forbidden: the actor may not do this.
	Forbidden
	// FenceMismatch: the id belongs to another grant than the caller's.
	FenceMismatch
	// Unauthenticated: the credential of the caller is not valid.
	Unauthenticated
	// GenerationMismatch: the allocation was changed meanwhile, by a later command than this one.
	GenerationMismatch
)

// String is the kind's stable reason code in API errors.
func (k Kind) String() string {
	names := [...]string{
		"", "INVALID", "NOT_FOUND", "ID_TAKEN", "ENDED", "REVISION_MISMATCH", "POLICY_BREACH",
		"IN_USE", "FULL", "FORBIDDEN", "FENCE_MISMATCH", "UNAUTHENTICATED",
		"GENERATION_MISMATCH",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return "UNKNOWN"
}

// Error is a refusal other than a denial. It is a value, equal on all replicas, and never reports an internal failure.
type Error struct {
	Kind Kind
	// Field is the path of the offending field in the command, for example "claims[1].amounts[cpu]"; may be empty.
	Field string
	// Text names the object, the rule and the way out.
	Text string
	// Breaches lists every broken rule if Kind is PolicyBreach.
	Breaches []Breach
	// Verb is the verb that the caller lacks, for metrics, logs and records; 0 if something else is the reason. Place is
	// where, as TREE:NODE; empty for the cluster. They may be shown if Kind is Forbidden: other refusals may say that the
	// place does not exist.
	Verb  access.Verb
	Place string
}

// Error is the text, with the field in front if there is one.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// Breach is one policy rule that a configuration would violate.
type Breach struct {
	// Tree and Node name the node that violates the rule; Policy is the policy in force there.
	Tree, Node, Policy string
	// Resource is empty if the rule is not about a single one.
	Resource string
	// Text states the rule with its numbers.
	Text string
}

// MaxErrorText is the approximate number of bytes that a refusal spends on listing objects of one kind.
const MaxErrorText = 4 * MaxReason

// Join merges the refusals of parts of one change; both may be nil. A caller then learns about all of them at once. The
// first refusal determines kind and field; other is merged only if it has the same kind, and every part can have a
// refusal of that kind.
func (e *Error) Join(other *Error) *Error {
	switch {
	case e == nil:
		return other
	case other == nil || other.Kind != e.Kind:
		return e
	case e.Kind == PolicyBreach:
		return NewBreachError(append(e.Breaches, other.Breaches...))
	case e.Kind == InUse && len(e.Text) <= MaxErrorText:
		if e.Text += "; and " + other.Text; len(e.Text) > MaxErrorText {
			e.Text += "; and more"
		}
	}
	return e
}

// IsFull reports whether Join with another refusal to remove what is in use would add nothing, so that it need not be
// made.
func (e *Error) IsFull() bool { return e != nil && e.Kind == InUse && len(e.Text) > MaxErrorText }

// Errorf returns a refusal of a kind about a field, which may be empty.
func Errorf(kind Kind, field, format string, args ...any) *Error {
	return &Error{Kind: kind, Field: field, Text: fmt.Sprintf(format, args...)}
}

// NewBreachError returns the refusal that lists every breach.
func NewBreachError(breaches []Breach) *Error {
	first := breaches[0]
	err := Errorf(PolicyBreach, "", "policy %s of %s forbids it%s: %s", first.Policy, Place(first.Tree, first.Node),
		resourceClause(first), first.Text)
	for _, b := range breaches[1:] {
		err.Text += "; and "
		if b.Policy != first.Policy {
			err.Text += "policy " + b.Policy + " "
		}
		err.Text += "of " + Place(b.Tree, b.Node) + resourceClause(b) + ": " + b.Text
		if len(err.Text) > MaxErrorText {
			err.Text += "; and more"
			break
		}
	}
	err.Breaches = breaches[:min(len(breaches), MaxRevisionChanges)]
	return err
}

func resourceClause(b Breach) string {
	if b.Resource == "" {
		return ""
	}
	return " for " + b.Resource
}
