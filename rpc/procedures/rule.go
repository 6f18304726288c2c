package procedures

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/internal/access"
)

// Scope says where the right of a caller is decided. The zero value is not a scope.
type Scope uint8

// The scopes of rules.
const (
	// ScopePublic lets every caller call the method.
	ScopePublic Scope = iota + 1
	// ScopeCluster asks the verb on the cluster before the method begins.
	ScopeCluster
	// ScopeLedger leaves it to the ledger, which asks while it applies the command: the verb, and others that depend on
	// the command.
	ScopeLedger
	// ScopeAnswer lets the answer have only what the caller may see. The verb is that which is asked for a record, a node,
	// or the part of the answer that not every caller sees.
	ScopeAnswer
	// ScopeNode is for nodes of the cluster only.
	ScopeNode
	// ScopeAuthenticated lets every caller with an identity call the method, whatever it may do.
	ScopeAuthenticated
)

var scopeNames = [...]string{"none", "public", "cluster", "ledger", "answer", "node", "authenticated"}

// String is the name of the scope.
func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return "unknown"
}

// Rule says who may call a procedure, and where that is decided. The zero value is not a rule.
type Rule struct {
	Scope Scope
	// Verb is 0 if the rule names none.
	Verb access.Verb
}

// check refuses a rule that contradicts itself.
func (r Rule) check(m protoreflect.MethodDescriptor, public bool) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("the method %s %s; see methodRules", m.FullName(), fmt.Sprintf(format, args...))
	}
	if isForNodes := r.Scope == ScopeNode; isForNodes == public && r.Scope != 0 {
		return wrong("has the scope %s in a service for other callers", r.Scope)
	}
	switch r.Scope {
	case ScopePublic, ScopeNode, ScopeAuthenticated:
		if r.Verb != 0 {
			return wrong("has the scope %s, which asks no verb, and the verb %s", r.Scope, r.Verb)
		}
	case ScopeCluster:
		if !access.ClusterVerbs.Has(r.Verb) {
			return wrong("has the scope %s and no verb of the cluster", r.Scope)
		}
	case ScopeAnswer:
		if r.Verb == 0 {
			return wrong("has the scope %s and no verb", r.Scope)
		}
	case ScopeLedger:
	default:
		return wrong("has no rule that says who may call it")
	}
	return nil
}
