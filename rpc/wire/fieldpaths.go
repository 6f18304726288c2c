package wire

import (
	"fmt"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

// The ledger requires sorted lists; callers may send them in any order. A refusal must name the position in the
// caller's list.

// sortedOrder gives the index of the first element, the second, and so on. The sort is stable.
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

func (m FieldPaths) recordOrder(list string, order []int) []int {
	for to, from := range order {
		if to != from {
			m[fmt.Sprintf("%s[%d]", list, to)] = fmt.Sprintf("%s[%d]", list, from)
		}
	}
	return order
}

// recordBindings records the order of the bindings of one place and of their subjects. The list has the path sorted in
// the command, and written in the request. It has been converted without an error.
func (m FieldPaths) recordBindings(sorted, written string, list []*quoratev1.Binding) {
	canonical := make([]access.Binding, len(list))
	for i := range list {
		if one, err := ToBindings(written, list[i:i+1]); err == nil && len(one) == 1 {
			canonical[i] = one[0]
		}
	}
	order := sortedOrder(canonical, access.Binding.Compare)
	same := func(a, b int) bool { return canonical[a].Compare(canonical[b]) == 0 }
	for to, from := range slices.CompactFunc(order, same) {
		inCommand, inRequest := fmt.Sprintf("%s[%d]", sorted, to), fmt.Sprintf("%s[%d]", written, from)
		if inCommand != inRequest {
			m[inCommand] = inRequest
		}
		for at, subject := range canonical[from].To {
			isSame := func(m *quoratev1.Subject) bool { return manifest.SubjectOf(m) == subject }
			if i := slices.IndexFunc(list[from].GetSubjects(), isSame); i != at {
				m[fmt.Sprintf("%s.subjects[%d]", inCommand, at)] = fmt.Sprintf("%s.subjects[%d]", inRequest, i)
			}
		}
	}
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

// elementEnds are where the elements end that a field is in, the innermost one first: in
// trees[0].nodes[3].bindings[1].subjects[0] that is a subject of a binding of a node of a tree. An element is recorded
// with the whole path to it.
func elementEnds(field string) []int {
	var ends []int
	for end := len(field); end > 0; end-- {
		if field[end-1] == ']' && (end == len(field) || field[end] == '.') {
			ends = append(ends, end)
		}
	}
	return ends
}
