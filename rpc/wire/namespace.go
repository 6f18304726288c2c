package wire

import (
	"cmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// The ledger has qualified ids, and messages have a namespace beside each id. These functions are the only ones that
// make one of the other, so nothing above package wire knows how an id is qualified.

// namesAllocation is a request for one allocation, or a reference to it.
type namesAllocation interface {
	GetNamespace() string
	GetId() string
}

// ToID is the qualified id of the allocation that a message names. Without a namespace it is in own, that of the
// caller.
func ToID(m namesAllocation, own string) string {
	return quota.QualifiedID(cmp.Or(m.GetNamespace(), own), m.GetId())
}

// FromID is a reference to an allocation; nil for the empty id. It has no id if a drain is in the place of the
// allocation, or the caller may not know it.
func FromID(qualified string) *quoratev1.AllocationRef {
	switch qualified {
	case "":
		return nil
	case quota.DrainedBy, quota.HiddenAllocation:
		return &quoratev1.AllocationRef{}
	}
	namespace, id := quota.SplitID(qualified)
	return &quoratev1.AllocationRef{Namespace: namespace, Id: id}
}

// FromIDs is a list of references to allocations.
func FromIDs(qualified []string) []*quoratev1.AllocationRef {
	var list []*quoratev1.AllocationRef
	for _, id := range qualified {
		list = append(list, FromID(id))
	}
	return list
}

// ToReader is a refusal with the ids of the reader's own namespace without that.
func ToReader(e *quota.Error, own string) *quota.Error {
	if e == nil {
		return nil
	}
	text := quota.WithoutNamespace(e.Text, own)
	if text == e.Text {
		return e
	}
	shown := *e
	shown.Text = text
	return &shown
}
