package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// The ledger requires sorted lists; callers may send them in any order. A refusal must name the position in the
// caller's list.

// sortedOrder gives the order of a list: which element comes first, second, and so on. Equal ones stay as they were.
func sortedOrder[T any](list []T, compare func(a, b T) int) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(list[a], list[b]) })
	return order
}

// FieldPaths leads the element of an ordered list ("trees[0].nodes[3]") back to where the caller wrote it.
type FieldPaths map[string]string

// recordOrder records an order and returns it.
func (m FieldPaths) recordOrder(list string, order []int) []int {
	for to, from := range order {
		if to != from {
			m[fmt.Sprintf("%s[%d]", list, to)] = fmt.Sprintf("%s[%d]", list, from)
		}
	}
	return order
}

// RestoreField is the refusal with its field as the caller wrote it.
func (m FieldPaths) RestoreField(e *quota.Error) *quota.Error {
	const tree = "trees[" // the element is behind the second bracket: trees[0].nodes[3].path
	_, rest, nested := strings.Cut(e.Field, "].")
	end := strings.IndexByte(rest, ']')
	if !strings.HasPrefix(e.Field, tree) || !nested || end < 0 {
		return e
	}
	element := e.Field[:len(e.Field)-len(rest)+end+1]
	from, moved := m[element]
	if !moved {
		return e
	}
	named := *e
	named.Field = from + rest[end+1:]
	return &named
}
