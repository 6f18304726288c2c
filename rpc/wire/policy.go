package wire

import (
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func toPolicySpecs(policies []*quoratev1.Policy, field string, moved FieldPaths) []quota.PolicySpec {
	var list []quota.PolicySpec
	order := sortedOrder(
		policies, func(a, b *quoratev1.Policy) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, from := range moved.recordOrder(field, order) {
		p := policies[from]
		list = append(list, quota.PolicySpec{
			Name: p.GetName(), Base: p.GetBase(), Unset: p.GetUnset(), Sum: p.GetSum(), ChildLimit: p.GetChildLimit(),
			UnknownNodes: p.GetUnknownNodes(), ClaimsAt: p.GetClaimsAt(), Borrowing: p.GetBorrowing(),
			Preemption: p.GetPreemption(), Setters: p.GetSetters(),
		})
	}
	return list
}

func toSortedNames(names []string, field string, moved FieldPaths) []string {
	var list []string
	for _, from := range moved.recordOrder(field, sortedOrder(names, strings.Compare)) {
		list = append(list, names[from])
	}
	return slices.Clip(list)
}

// FromPolicySpecs converts definitions of policies.
func FromPolicySpecs(specs []quota.PolicySpec) []*quoratev1.Policy {
	var wire []*quoratev1.Policy
	for _, s := range specs {
		wire = append(wire, &quoratev1.Policy{
			Name: s.Name, Base: s.Base, Unset: s.Unset, Sum: s.Sum, ChildLimit: s.ChildLimit,
			UnknownNodes: s.UnknownNodes, ClaimsAt: s.ClaimsAt, Borrowing: s.Borrowing, Preemption: s.Preemption,
			Setters: s.Setters,
		})
	}
	return wire
}
