package quota

import "fmt"

// Kind says why a command was refused. The list is closed; rpc maps each kind to one code.
type Kind uint8

// The closed list of kinds.
const (
	// Invalid: the command itself is wrong, whatever the state.
	Invalid Kind = iota + 1
	// NotFound: it names a tree, node, resource or allocation that does not exist.
	NotFound
	// IDTaken: the id stands for another request.
	IDTaken
	// Ended: the allocation of that id has ended.
	Ended
	// RevisionMismatch: the configuration is not the one that the caller expected.
	RevisionMismatch
	// PolicyBreach: a policy forbids the result.
	PolicyBreach
	// InUse: what should be removed is still held.
	InUse
	// Full: a declared bound of the ledger is reached.
	Full
	// Forbidden: the actor may not do this.
	Forbidden
	// FenceMismatch: the id stands for another grant than the caller's.
	FenceMismatch
)

// String is the kind's stable reason code in API errors.
func (k Kind) String() string {
	names := [...]string{"", "INVALID", "NOT_FOUND", "ID_TAKEN", "ENDED", "REVISION_MISMATCH", "POLICY_BREACH", "IN_USE", "FULL", "FORBIDDEN", "FENCE_MISMATCH"}
	if int(k) < len(names) {
		return names[k]
	}
	return "UNKNOWN"
}

// Error is a refusal other than a denial: a value, equal on all replicas, never an accident.
type Error struct {
	Kind Kind
	// Field is the path of the offending field in the command, for example "claims[1].amounts[cpu]"; may be empty.
	Field string
	// Text names the thing, the rule and the way out.
	Text string
	// Breaches lists every broken rule if Kind is PolicyBreach.
	Breaches []Breach
}

// Error is the text, with the field in front if there is one.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// Breach is one policy rule that a configuration would break.
type Breach struct {
	// Tree and Node name the node whose rule is broken; Policy is the policy in force there.
	Tree, Node, Policy string
	// Resource is empty if the rule is not about a single one.
	Resource string
	// Text says the rule with its numbers.
	Text string
}

// MaxErrorText is about how much of a refusal's text names things of the same kind.
const MaxErrorText = 4 * MaxReason

// Join joins the refusals of parts of one change, which may be nil, so that a person is told at once what stands in the way.
// The first counts; others are told along with it if they are of its kind and it is one that every part can have.
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

// Errorf makes a refusal of a kind about a field, which may be empty.
func Errorf(kind Kind, field, format string, args ...any) *Error {
	return &Error{Kind: kind, Field: field, Text: fmt.Sprintf(format, args...)}
}

// NewBreachError makes the refusal that lists every breach.
func NewBreachError(breaches []Breach) *Error {
	first := breaches[0]
	err := Errorf(PolicyBreach, "", "policy %s of %s forbids it%s: %s", first.Policy, Place(first.Tree, first.Node), resourceClause(first), first.Text)
	for _, b := range breaches[1:] {
		err.Text += "; and of " + Place(b.Tree, b.Node) + resourceClause(b) + ": " + b.Text
		if len(err.Text) > MaxErrorText {
			err.Text += "; and more"
			break
		}
	}
	err.Breaches = breaches[:min(len(breaches), MaxRevisionChanges)]
	return err
}

// resourceClause names what the rule is about, if it is about one resource.
func resourceClause(b Breach) string {
	if b.Resource == "" {
		return ""
	}
	return " for " + b.Resource
}
