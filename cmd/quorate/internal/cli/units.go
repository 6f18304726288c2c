package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
)

// Units are the units of resources, by tree and resource: people read and write 16Gi where the API counts bytes.
type Units map[string]map[string]quoratev1.Unit

// AddTree adds the resources of a tree.
func (u Units) AddTree(tree string, resources []*quoratev1.Resource) {
	if u[tree] == nil {
		u[tree] = map[string]quoratev1.Unit{}
	}
	for _, r := range resources {
		u[tree][r.GetName()] = r.GetUnit()
	}
}

// UnitOf is the unit of a resource. The error lists the known trees or resources.
func (u Units) UnitOf(tree, resource string) (quoratev1.Unit, error) {
	resources, known := u[tree]
	if !known {
		return 0, fmt.Errorf("there is no tree %q; there are: %s", tree, JoinNames(u))
	}
	unit, registered := resources[resource]
	if !registered {
		return 0, fmt.Errorf("tree %q has no resource %q; it has: %s", tree, resource, JoinNames(resources))
	}
	return unit, nil
}

// FormatAmount writes an amount; in base units if the resource is unknown.
func (u Units) FormatAmount(tree, resource string, amount int64) string {
	return quantity.Format(amount, u[tree][resource])
}

// FormatAmounts writes the amounts of a claim, sorted by resource.
func (u Units) FormatAmounts(tree string, amounts map[string]int64) string {
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(amounts)) {
		parts = append(parts, resource+"="+u.FormatAmount(tree, resource, amounts[resource]))
	}
	return strings.Join(parts, " ")
}

// JoinNames lists the keys of a map, sorted.
func JoinNames[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
