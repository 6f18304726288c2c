package workload

import (
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// secondNamespace has allocations whose ids the namespace of the caller has too. In the history an allocation there has
// the name of the namespace in front of its id, and one in the namespace of the caller has its id alone, so a server
// that confuses the two shows one allocation with the claims or the fence of another.
const (
	secondNamespace = "second"
	secondPrefix    = secondNamespace + ":"
)

// newName returns the name of a new allocation. The names of two allocations in a row often differ in the namespace
// only.
func (c *caller) newName() string {
	c.serial++
	if c.serial%2 == 1 {
		return secondPrefix + c.idOf(c.serial-1)
	}
	return c.idOf(c.serial)
}

// newPartName returns the name of a part of an allocation, which is in the same namespace.
func (c *caller) newPartName(whole string) string {
	namespace, _ := splitName(whole)
	return joinName(namespace, c.newID()+"-part")
}

// splitName returns the namespace, empty for that of the caller, and the id.
func splitName(name string) (namespace, id string) {
	if id, isSecond := strings.CutPrefix(name, secondPrefix); isSecond {
		return secondNamespace, id
	}
	return "", name
}

func joinName(namespace, id string) string {
	if namespace == secondNamespace {
		return secondPrefix + id
	}
	return id
}

// NameOf returns the name in the history of an allocation that an answer refers to.
func NameOf(ref *quoratev1.AllocationRef) string { return joinName(ref.GetNamespace(), ref.GetId()) }
