package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

// units knows the resources of trees, so that people read and write 16Gi where the API counts bytes.
type units map[string]map[string]quoratev1.Unit

func (u units) add(tree string, resources []*quoratev1.Resource) {
	if u[tree] == nil {
		u[tree] = map[string]quoratev1.Unit{}
	}
	for _, r := range resources {
		u[tree][r.GetName()] = r.GetUnit()
	}
}

// of gives the unit of a resource, or says which there are.
func (u units) of(tree, resource string) (quoratev1.Unit, error) {
	resources, known := u[tree]
	if !known {
		return 0, fmt.Errorf("there is no tree %q; there are: %s", tree, names(u))
	}
	unit, registered := resources[resource]
	if !registered {
		return 0, fmt.Errorf("tree %q registers no resource %q; it has: %s", tree, resource, names(resources))
	}
	return unit, nil
}

// amount writes an amount; one of an unknown resource in base units.
func (u units) amount(tree, resource string, amount int64) string {
	return manifest.FormatQuantity(amount, u[tree][resource])
}

// amounts writes what a claim asks for, by resource name.
func (u units) amounts(tree string, amounts map[string]int64) string {
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(amounts)) {
		parts = append(parts, resource+"="+u.amount(tree, resource, amounts[resource]))
	}
	return strings.Join(parts, " ")
}

func names[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
