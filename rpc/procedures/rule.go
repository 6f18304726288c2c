package procedures

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// Rule says who may call a procedure, and where that is decided. The zero value is not a rule.
type Rule struct {
	Scope quoratev1.RuleScope
	// Verb is 0 if the rule names none.
	Verb access.Verb
}

// ruleOf reads the rule of a method and refuses one that contradicts itself.
func ruleOf(m protoreflect.MethodDescriptor, public bool) (Rule, error) {
	stated, _ := proto.GetExtension(m.Options(), quoratev1.E_Rule).(*quoratev1.Rule)
	rule := Rule{Scope: stated.GetScope()}
	wrong := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("the method %s %s; see quorate.v1.Rule", m.FullName(), fmt.Sprintf(format, args...))
	}
	if stated.GetVerb() != "" {
		verb, err := access.ParseVerb(stated.GetVerb())
		if err != nil {
			return wrong("has a rule with a wrong verb: %v", err)
		}
		rule.Verb = verb
	}
	if isForNodes := rule.Scope == quoratev1.RuleScope_RULE_SCOPE_NODE; isForNodes == public && rule.Scope != 0 {
		return wrong("has the scope %s in a service for other callers", rule.Scope)
	}
	switch rule.Scope {
	case quoratev1.RuleScope_RULE_SCOPE_PUBLIC, quoratev1.RuleScope_RULE_SCOPE_NODE,
		quoratev1.RuleScope_RULE_SCOPE_AUTHENTICATED:
		if rule.Verb != 0 {
			return wrong("has the scope %s, which asks no verb, and the verb %s", rule.Scope, rule.Verb)
		}
	case quoratev1.RuleScope_RULE_SCOPE_CLUSTER:
		if !access.ClusterVerbs.Has(rule.Verb) {
			return wrong("has the scope %s and no verb of the cluster", rule.Scope)
		}
	case quoratev1.RuleScope_RULE_SCOPE_ANSWER:
		if rule.Verb == 0 {
			return wrong("has the scope %s and no verb", rule.Scope)
		}
	case quoratev1.RuleScope_RULE_SCOPE_LEDGER:
	case quoratev1.RuleScope_RULE_SCOPE_UNSPECIFIED:
		fallthrough
	default: // of a newer schema
		return wrong("has no rule that says who may call it")
	}
	return rule, nil
}
