package quota

import "strings"

// DefaultNamespace has the ids of callers without a credential.
const DefaultNamespace = "default"

// SharedNamespaces is how namespaces begin that the users of one front end share.
const SharedNamespaces = "frontend/"

// idSeparator is between namespace and id. Neither may contain it.
const idSeparator = " "

// The ledger names an allocation by one text, its qualified id: that of DefaultNamespace is the id itself, and that of
// another namespace is NAMESPACE, a blank, and the id. Each pair has one qualified id, and the reverse, so maps, orders
// and comparisons by it are by the pair, and a record has no second text (docs/adr/0144-ids-live-in-namespaces.md).

// QualifiedID names an allocation in the whole ledger. An empty namespace is DefaultNamespace.
func QualifiedID(namespace, id string) string {
	if namespace == "" || namespace == DefaultNamespace {
		return id
	}
	return namespace + idSeparator + id
}

// SplitID returns the namespace of a qualified id, and the id in it.
func SplitID(qualified string) (namespace, id string) {
	if before, after, found := strings.Cut(qualified, idSeparator); found {
		return before, after
	}
	return DefaultNamespace, qualified
}

// NamespaceOf returns the namespace of a qualified id.
func NamespaceOf(qualified string) string {
	namespace, _ := SplitID(qualified)
	return namespace
}

// IDIn returns a qualified id without its namespace.
func IDIn(qualified string) string {
	_, id := SplitID(qualified)
	return id
}

// IsNamespace reports whether s may be the name of a namespace: 1 to MaxNamespace visible ASCII characters other than
// the asterisk, as the name of a user.
func IsNamespace(s string) bool {
	return s != "" && IsVisible(s, MaxNamespace) && strings.IndexByte(s, '*') < 0
}

// IsQualifiedID reports whether s names an allocation, in the one way in which that is named.
func IsQualifiedID(s string) bool {
	namespace, id := SplitID(s)
	if len(id) != len(s) && (!IsNamespace(namespace) || namespace == DefaultNamespace) {
		return false
	}
	return id != "" && IsVisible(id, MaxID)
}

// WithoutNamespace returns a text in which qualified ids are quoted, without a namespace that its reader knows.
func WithoutNamespace(text, namespace string) string {
	if namespace == DefaultNamespace {
		return text
	}
	return strings.ReplaceAll(text, `"`+namespace+idSeparator, `"`)
}
