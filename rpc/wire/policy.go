package wire

import (
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

func toPolicySpecs(policies []*quoratev1.Policy, field string, moved FieldPaths) []quota.PolicySpec {
	var list []quota.PolicySpec
	order := sortedOrder(
		policies, func(a, b *quoratev1.Policy) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, from := range moved.recordOrder(field, order) {
		list = append(list, manifest.PolicySpec(policies[from]))
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
		wire = append(wire, manifest.PolicyMessage(s))
	}
	return wire
}
