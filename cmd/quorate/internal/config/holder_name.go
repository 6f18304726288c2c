package config

import (
	"slices"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// holderKind says whether a name is that of a user or a group.
type holderKind string

const (
	noHolder    holderKind = ""
	userHolder  holderKind = "user"
	groupHolder holderKind = "group"
)

// holderName is a user or a group in the principal limits of a node. An entry there may name several, and the order of
// the groups decides which of a user's groups is counted, so entries are split rather than moved.
type holderName struct {
	kind holderKind
	name string
}

// String names it for people.
func (h holderName) String() string { return string(h.kind) + " " + h.name }

// wildcard stands for all names of its kind that a node does not name.
func (h holderName) wildcard() holderName { return holderName{h.kind, quota.Wildcard} }

// namePosition is an entry and the index of a name among its names; -1 if there is none.
type namePosition struct{ entry, name int }

func (p namePosition) isFound() bool { return p.entry >= 0 }

// names are the names of an entry that are of the same kind.
func (h holderName) names(entry *quoratev1.PrincipalLimit) []string {
	if h.kind == groupHolder {
		return entry.GetGroups()
	}
	return entry.GetUsers()
}

func (h holderName) find(entries []*quoratev1.PrincipalLimit) namePosition {
	for i, e := range entries {
		if at := slices.Index(h.names(e), h.name); at >= 0 {
			return namePosition{i, at}
		}
	}
	return namePosition{-1, -1}
}

// replace gives the name an entry of its own in place of what the entry at a position says of it; nil removes the name.
func (h holderName) replace(
	entries []*quoratev1.PrincipalLimit, p namePosition, own *quoratev1.PrincipalLimit,
) []*quoratev1.PrincipalLimit {
	entry := entries[p.entry]
	if own != nil && sameLimits(own, entry) {
		return entries // splitting it would change nothing but the text
	}
	names := h.names(entry)
	parts := h.split(entry, names[:p.name], own, names[p.name+1:])
	return slices.Concat(entries[:p.entry], parts, entries[p.entry+1:])
}

// insert adds an entry for a new name, behind all that are named already. The wildcard stays the last of its kind.
func (h holderName) insert(
	entries []*quoratev1.PrincipalLimit, own *quoratev1.PrincipalLimit,
) []*quoratev1.PrincipalLimit {
	p := h.wildcard().find(entries)
	if !p.isFound() {
		return slices.Concat(entries, []*quoratev1.PrincipalLimit{h.entryForName(own)})
	}
	names := h.names(entries[p.entry])
	parts := h.split(entries[p.entry], names[:p.name], own, names[p.name:])
	return slices.Concat(entries[:p.entry], parts, entries[p.entry+1:])
}

// split makes an entry for some names of an entry, one for this name if own is not nil, and one for other names. Names
// of the other kind stay together, in the first of the entries for names before or after.
func (h holderName) split(
	entry *quoratev1.PrincipalLimit, before []string, own *quoratev1.PrincipalLimit, after []string,
) []*quoratev1.PrincipalLimit {
	switch {
	case own == nil:
		before, after = slices.Concat(before, after), nil
	case h.kind == userHolder && h.name != quota.Wildcard: // the order of users does not matter
		before, after = nil, slices.Concat(before, after)
	}
	var parts []*quoratev1.PrincipalLimit
	first := h.withNames(entry, before, true)
	if len(before) == 0 && len(after) > 0 {
		first = nil
	}
	if first != nil && len(first.GetUsers())+len(first.GetGroups()) > 0 {
		parts = append(parts, first)
	}
	if own != nil {
		parts = append(parts, h.entryForName(own))
	}
	if len(after) > 0 {
		parts = append(parts, h.withNames(entry, after, first == nil))
	}
	return parts
}

// entryForName is an entry for nothing but this name.
func (h holderName) entryForName(own *quoratev1.PrincipalLimit) *quoratev1.PrincipalLimit {
	return h.withNames(own, []string{h.name}, false)
}

// withNames is an entry with other names of this kind, and with or without those of the other kind.
func (h holderName) withNames(
	old *quoratev1.PrincipalLimit, names []string, keepOthers bool,
) *quoratev1.PrincipalLimit {
	entry := proto.CloneOf(old)
	users, groups := &entry.Users, &entry.Groups
	if h.kind == groupHolder {
		users, groups = groups, users
	}
	*users = slices.Clone(names)
	if !keepOthers {
		*groups = nil
	}
	return entry
}

// sameLimits ignores the names that the entries are for.
func sameLimits(a, b *quoratev1.PrincipalLimit) bool {
	first, second := proto.CloneOf(a), proto.CloneOf(b)
	first.Users, first.Groups, second.Users, second.Groups = nil, nil, nil, nil
	return proto.Equal(first, second)
}
