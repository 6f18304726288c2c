package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// NamespaceVariable names the namespace of ids in the environment.
const NamespaceVariable = "QUORATE_NAMESPACE"

// DefaultNamespace has the ids of callers without a credential.
const DefaultNamespace = "default"

// named is what has a namespace and an id in it.
type named interface {
	GetNamespace() string
	GetId() string
}

// NameText names an allocation beside something of a namespace: with its own only if that is another one.
func NameText(a named, beside string) string {
	if a.GetNamespace() == "" || a.GetNamespace() == cmp.Or(beside, DefaultNamespace) {
		return a.GetId()
	}
	return qualifiedID(a.GetNamespace(), a.GetId())
}

// qualifiedID is the namespace, a blank and the id, neither of which has a blank: the text of the ledger, which
// [Env.SplitID] reads.
func qualifiedID(namespace, id string) string { return namespace + " " + id }

// SplitID reads the id of an allocation in a command line: an id, or the namespace, a blank and the id. The namespace
// is empty if the text has none, which stands for that of --namespace or of the caller.
func (c *Env) SplitID(text string) (namespace, id string, err error) {
	namespace, id, isQualified := strings.Cut(text, " ")
	switch {
	case !isQualified:
		return "", text, nil
	case namespace == "" || id == "" || strings.Contains(id, " "):
		return "", "", Usagef("%q is not an id: write ID, or 'NAMESPACE ID'", text)
	case c.Namespace != "" && c.Namespace != namespace:
		return "", "", Usagef("%q is an id of the namespace %s, and --namespace names %s", text, namespace, c.Namespace)
	}
	return namespace, id, nil
}

// IDText is the id of an allocation as the commands of this caller take it: alone, if it is in the namespace that they
// mean without another word.
func (c *Env) IDText(a named) string { return c.idText(a.GetNamespace(), a.GetId()) }

func (c *Env) idText(namespace, id string) string {
	own := c.Namespace
	if own == "" && !c.Token.isSet() && c.TLS.files.Cert == "" {
		own = DefaultNamespace
	}
	if namespace == "" || namespace == own {
		return id
	}
	return qualifiedID(namespace, id)
}

// takeNamespace lets the first argument of a command, the id of an allocation, name the namespace of the command too.
func (c *Env) takeNamespace(run runFunc) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return run(cmd, args)
		}
		namespace, id, err := c.SplitID(args[0])
		if err != nil {
			return err
		}
		if namespace != "" {
			c.Namespace = namespace
		}
		return run(cmd, append([]string{id}, args[1:]...))
	}
}

type runFunc = func(*cobra.Command, []string) error

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
