package access

import "strings"

// ReservedIDs are the prefixes of ids that bindings reserve, anywhere in the ledger: ids are one namespace. The zero
// value reserves nothing. Add and Remove take each other back.
type ReservedIDs struct {
	// bindings counts the bindings of each prefix.
	bindings map[string]int
	// lengths counts the prefixes of each length, so that a look-up tries only lengths that exist.
	lengths [MaxIDPrefix + 1]int
}

// Add reserves the prefixes of a list of checked bindings.
func (r *ReservedIDs) Add(list []Binding) {
	for i := range list {
		prefix := list[i].IDs
		if prefix == "" {
			continue
		}
		if r.bindings == nil {
			r.bindings = map[string]int{}
		}
		if r.bindings[prefix]++; r.bindings[prefix] == 1 {
			r.lengths[len(prefix)]++
		}
	}
}

// Remove takes back one Add of the same bindings.
func (r *ReservedIDs) Remove(list []Binding) {
	for i := range list {
		prefix := list[i].IDs
		if prefix == "" {
			continue
		}
		if r.bindings[prefix]--; r.bindings[prefix] == 0 {
			delete(r.bindings, prefix)
			r.lengths[len(prefix)]--
		}
	}
}

// Has reports whether an id begins with a reserved prefix.
func (r *ReservedIDs) Has(id string) bool {
	for n := 1; n < len(r.lengths) && n <= len(id) && len(r.bindings) > 0; n++ {
		if r.lengths[n] > 0 && r.bindings[id[:n]] > 0 {
			return true
		}
	}
	return false
}

// MayName reports whether the caller may give an allocation this id: the id is not reserved, or begins with a prefix of
// the caller. Of several prefixes that an id begins with one is enough, because rights only add.
func (r *Rights) MayName(id string, reserved *ReservedIDs) bool {
	return !reserved.Has(id) || r.ownsPrefix(id)
}

// OwnsPrefixOf reports whether an id begins with a reserved prefix that the caller may use.
func (r *Rights) OwnsPrefixOf(id string) bool { return r.ownsPrefix(id) }

// MayHoldFor reports whether the caller may hold for a user or group: itself aside, hold.as with a binding that names
// it or says any.
func (r *Rights) MayHoldFor(name string) bool { return r.Verbs.Has(HoldAs) && r.HoldAs.Allow(name) }

// String is the text of a list of holders for messages.
func (h Holders) String() string {
	if h.Any {
		return "any"
	}
	return strings.Join(h.Names, " ")
}
