package access

// Identity is a caller that is prepared for decisions: its names carry their hashes, so that a decision computes none.
// It is immutable. [NewIdentity] trusts the caller; [Book.Identify] asks the book whether its credential is valid.
type Identity struct {
	kind CallerKind
	// names are the user, if there is one, and the groups; filter has the filter bits of all of them.
	names  []hashedName
	filter uint64
	// ceiling bounds the verbs of the credential.
	ceiling Verbs
	// ends is the wall time at which the credential ends; 0 if the book does not know.
	ends int64
}

type hashedName struct {
	hash uint64
	kind SubjectKind // User or Group
	text string
}

// newHashedName computes the FNV-1a hash of kind and text. It decides where a table keeps an entry and nothing that can
// be observed: names are always compared whole.
func newHashedName(kind SubjectKind, text string) hashedName {
	hash := (uint64(14695981039346656037) ^ uint64(kind)) * 1099511628211
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	hash ^= hash >> 32 // the lower bits choose the slot
	return hashedName{hash: max(hash, 1), kind: kind, text: text}
}

// filterBit is one of 64 bits that a table sets for each of its names, so that most names that it does not have need no
// look-up.
func (n *hashedName) filterBit() uint64 { return 1 << (n.hash >> 58) }

// NewIdentity prepares a checked caller. The ceiling bounds the verbs of its credential; AllVerbs is none. The system
// has no ceiling.
func NewIdentity(c *Caller, ceiling Verbs) *Identity {
	id := &Identity{kind: c.Kind, ceiling: ceiling}
	if c.User != "" {
		id.names = make([]hashedName, 0, 1+len(c.Groups))
		id.names = append(id.names, newHashedName(User, c.User))
	}
	for _, group := range c.Groups {
		id.names = append(id.names, newHashedName(Group, group))
	}
	for i := range id.names {
		id.filter |= id.names[i].filterBit()
	}
	return id
}

// HoldsAt reports whether the credential has not ended at a wall time, as far as the book knows.
func (id *Identity) HoldsAt(wall int64) bool { return id.ends == 0 || wall < id.ends }

// Kind is the kind of the caller.
func (id *Identity) Kind() CallerKind { return id.kind }

// isKnown reports whether the caller has an identity that everyone includes.
func (id *Identity) isKnown() bool { return id.kind == AccountCaller || id.kind == External }

// Is reports whether the caller is a user.
func (id *Identity) Is(user string) bool {
	return user != "" && len(id.names) > 0 && id.names[0].kind == User && id.names[0].text == user
}
