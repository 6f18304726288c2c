package cli

import (
	"cmp"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// NamespaceVariable names the namespace of ids in the environment.
const NamespaceVariable = "QUORATE_NAMESPACE"

// DefaultNamespace has the ids of callers without a credential.
const DefaultNamespace = "default"

// NameText names an allocation beside something of a namespace: with its own only if that is another one.
func NameText(a interface {
	GetNamespace() string
	GetId() string
}, beside string,
) string {
	if a.GetNamespace() == "" || a.GetNamespace() == cmp.Or(beside, DefaultNamespace) {
		return a.GetId()
	}
	return a.GetId() + " of " + a.GetNamespace()
}

// withNamespaces adds the column of namespaces behind that of ids, if the allocations are in several.
func withNamespaces(rows [][]string, allocations []*quoratev1.Allocation) [][]string {
	if !slices.ContainsFunc(allocations, func(a *quoratev1.Allocation) bool {
		return a.GetNamespace() != allocations[0].GetNamespace()
	}) {
		return rows
	}
	return namespaceColumn(rows, allocations)
}

func namespaceColumn(rows [][]string, allocations []*quoratev1.Allocation) [][]string {
	rows[0] = slices.Insert(rows[0], 1, namespaceHeading)
	for i, a := range allocations {
		rows[i+1] = slices.Insert(rows[i+1], 1, a.GetNamespace())
	}
	return rows
}

const namespaceHeading = "NAMESPACE"

// CauseText names the allocation that ended or revoked another one, or what stands for it; empty if there is none.
func CauseText(by *quoratev1.AllocationRef, beside string, reason *quoratev1.EndReason) string {
	switch {
	case by == nil:
		return ""
	case by.GetId() != "":
		return NameText(by, beside)
	case reason.GetKind() == quoratev1.EndReasonKind_END_REASON_KIND_DRAIN:
		return "a drain"
	}
	return "another allocation"
}

// RevokerText names the allocation for which a lease is revoked; empty if it is not.
func RevokerText(a *quoratev1.Allocation) string {
	return CauseText(a.GetRevokedBy(), a.GetNamespace(), a.GetReason())
}

// EventCauseText names who or what caused an event; empty if that is not known.
func EventCauseText(e *quoratev1.Event) string {
	if by := CauseText(e.GetBy(), e.GetNamespace(), e.GetReason()); by != "" {
		return by
	}
	return e.GetActor()
}
