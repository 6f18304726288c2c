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
	for _, end := range elementEnds(e.Field) {
		if from, moved := m[e.Field[:end]]; moved {
			named := *e
			named.Field = from + e.Field[end:]
			return &named
		}
	}
	return e
}

// elementEnds are where the elements end that a field is in, the inner one first: in trees[0].nodes[3].path that is a
// node of a tree. Elements of a request are at most in each other once.
func elementEnds(field string) []int {
	outer := strings.IndexByte(field, ']') + 1
	if outer == 0 {
		return nil
	}
	if _, rest, nested := strings.Cut(field, "]."); nested {
		if inner := strings.IndexByte(rest, ']') + 1; inner > 0 {
			return []int{len(field) - len(rest) + inner, outer}
		}
	}
	return []int{outer}
}
