package access

// Command is one change of the book. The list is closed: [Book.Apply] knows all of them. A command says nothing about
// who asks; the ledger decides that before it applies one.
//
//sumtype:decl
type Command interface{ command() }

// CreateAccount adds an account. It changes nothing if the same account exists.
type CreateAccount struct{ Account Account }

// UpdateAccount replaces description, groups and Disabled of an account, except what is kept.
type UpdateAccount struct {
	Account Account
	// What is kept stays as it is, whatever Account has.
	KeepDescription, KeepGroups, KeepDisabled bool
}

// DeleteAccount removes an account and its tokens. Bindings that name it stay: an account that is created again under
// the name has them.
type DeleteAccount struct{ Name string }

// NewToken is what the server that makes a token stores of it.
type NewToken struct {
	ID TokenID
	// Hash is the SHA-256 of the secret.
	Hash [32]byte
	// Ends is the wall time at which it ends.
	Ends int64
}

// CreateToken adds a token to an account. It changes nothing if the same token exists.
type CreateToken struct {
	Account     string
	Token       NewToken
	Description string
	// Ceiling bounds the verbs of callers with the token; AllVerbs is no bound.
	Ceiling Verbs
}

// RotateToken adds a token with the account, description and ceiling of an old one, which ends after an overlap, or
// earlier by itself. The holder of the old token may ask for it: the new one can do no more.
type RotateToken struct {
	Old   TokenID
	Token NewToken
	// Overlap is how long the old token stays valid, in milliseconds, at most MaxOverlap; 0 ends it at once.
	Overlap int64
}

// RevokeToken ends a token for good. It changes nothing if the token is revoked.
type RevokeToken struct{ ID TokenID }

// Refuse adds a refusal, or replaces the one of the same key.
type Refuse struct{ Refused Refused }

// Unrefuse removes a refusal.
type Unrefuse struct{ Key RefusedKey }

// SetMode sets the mode. It never leads out of Guarded, and into it only while an administrator can log in.
type SetMode struct{ Mode Mode }

// ReplaceSection replaces the whole section.
type ReplaceSection struct{ Section Section }

// Bootstrap makes an account with a token and binds root to it on the cluster. It works once for each secret: for the
// first administrator, and then for each recovery by a member's machine.
type Bootstrap struct {
	// Secret is the hash of the secret that the caller has shown.
	Secret [32]byte
	// IsRecovery is true if the secret comes from a recovery, and Recoveries the count of the book that the recovery
	// found. The count is raised, so a recovery works once.
	IsRecovery bool
	Recoveries uint64
	// Member is the id of the member on whose machine the recovery was begun; empty for the first administrator.
	Member string
	// Guard also sets the mode to Guarded: a server that does not serve an open cluster asks for it, so that the cluster
	// is never open.
	Guard bool
	// Account is created if it does not exist, and enabled if it is disabled.
	Account string
	Token   NewToken
}

func (CreateAccount) command()  {}
func (UpdateAccount) command()  {}
func (DeleteAccount) command()  {}
func (CreateToken) command()    {}
func (RotateToken) command()    {}
func (RevokeToken) command()    {}
func (Refuse) command()         {}
func (Unrefuse) command()       {}
func (SetMode) command()        {}
func (ReplaceSection) command() {}
func (Bootstrap) command()      {}

// Moment is what a command needs to know of the ledger.
type Moment struct {
	// Wall is the wall time of the log entry in milliseconds since 1970.
	Wall int64
	// Index is the index of the log entry, at least 1.
	Index uint64
	// NodeBindings is the number of bindings of all nodes.
	NodeBindings int
	// BindsRole reports whether a binding of a node has the role of a name; nil means that none has.
	BindsRole func(role string) bool
	// KeepsLife is true if a token that replaces another one lives at most as long as that was made for: its caller may
	// not make tokens.
	KeepsLife bool
}

// Change is the effect of a command.
type Change struct {
	// Before and After are the books. They are the same one if nothing has changed.
	Before, After *Book
	// Differences say what is different, for records; they are in the order in which the command made them.
	Differences []Difference
}

// IsEmpty reports whether nothing has changed.
func (c Change) IsEmpty() bool { return c.Before == c.After }

// Undo is the book without the change. It is exact, the revision included, as long as no later change is kept.
func (c Change) Undo() *Book { return c.Before }

// ChangesRoles reports whether verbs of roles have changed, so that all tables of nodes must be compiled again.
func (c Change) ChangesRoles() bool { return !equalRoles(c.Before.roles, c.After.roles) }

// Difference is one object that a command has changed. It never contains hashes of secrets.
type Difference struct {
	// Object is account, token, refusal, mode, role, issuer, certificate, binding, token-life or bootstrap.
	Object string
	// Name is the name, id or key of the object; empty if there is one only.
	Name string
	// Before and After describe the object; empty where it does not exist.
	Before, After string
}
