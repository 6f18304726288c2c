package access

// Identify prepares a checked caller for decisions, as the book knows it at a wall time. It refuses with
// Unauthenticated an account that is unknown or disabled, a token that is unknown, revoked, ended or of another
// account, an issuer that is unknown, and a user or token in the list of refusals. The text names the cause, which is
// meant for the caller and for records.
//
// The groups and the ceiling of an account are those of the book, not those of the caller: they may have changed since
// the server authenticated it. Refusals with IssuedBefore, of certificates and of a jti are not asked here, because a
// log entry does not carry what they look at; servers ask them.
func (b *Book) Identify(c *Caller, wall int64) (*Identity, *Error) {
	switch c.Kind {
	case System, Anonymous:
		return NewIdentity(c, AllVerbs), nil
	case AccountCaller:
		return b.identifyAccount(c, wall)
	case External:
		return b.identifyExternal(c, wall)
	}
	return nil, refusal(Unauthenticated, "caller", oneOf(callerKinds[1:]), "%d is not a kind of caller", uint8(c.Kind))
}

// IdentifyUser returns who a user is that is not calling, such as the owner of a webhook: with the groups that its
// account has now. Groups that an issuer tells with each credential are not known then.
func (b *Book) IdentifyUser(user string, wall int64) (*Identity, *Error) {
	c := callerOf(user)
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Kind == External {
		return b.identifyExternal(&c, wall)
	}
	account, err := b.enabledAccount(user)
	if err == nil {
		err = b.refuseUser(user, wall)
	}
	if err != nil {
		return nil, err
	}
	c.Groups = account.Groups
	return NewIdentity(&c, AllVerbs), nil
}

func (b *Book) enabledAccount(user string) (*accountRecord, *Error) {
	account, found := b.accounts.Get(user[min(len(accountPrefix), len(user)):])
	if !found || account.Disabled {
		return nil, refusal(Unauthenticated, "user", "ask an administrator", "%s is disabled", user)
	}
	return account, nil
}

func (b *Book) identifyAccount(c *Caller, wall int64) (*Identity, *Error) {
	id, _ := c.Token()
	t, found := b.tokens.Get(id.number())
	if !found || t.Account != c.User[min(len(accountPrefix), len(c.User)):] {
		return nil, refusal(Unauthenticated, "credential", "log in again", "%s has no token %s", c.User, id)
	}
	account, err := b.enabledAccount(c.User)
	switch {
	case err != nil:
		return nil, err
	case t.Revoked != 0:
		return nil, refusal(Unauthenticated, "credential", "use another token", "token %s is revoked", id)
	case wall >= t.Ends:
		return nil, refusal(Unauthenticated, "credential", "use another token", "token %s has ended", id)
	}
	if err := b.refuseUser(c.User, wall); err != nil {
		return nil, err
	}
	if b.isRefused(RefusedKey{Kind: RefusedToken, Name: id.String()}, wall) {
		return nil, refusal(Unauthenticated, "credential", "ask an administrator", "token %s is refused", id)
	}
	current := *c
	current.Groups = account.Groups
	identity := NewIdentity(&current, t.Ceiling)
	identity.ends = t.Ends
	return identity, nil
}

func (b *Book) identifyExternal(c *Caller, wall int64) (*Identity, *Error) {
	switch issuer := c.Issuer(); issuer {
	case CertificateIssuer, FrontEndIssuer:
	default:
		if b.issuer(issuer) == nil {
			return nil, refusal(Unauthenticated, "user", "log in again", "%q is not an issuer of this cluster", clip(issuer))
		}
	}
	if err := b.refuseUser(c.User, wall); err != nil {
		return nil, err
	}
	return NewIdentity(c, AllVerbs), nil
}

func (b *Book) refuseUser(user string, wall int64) *Error {
	if b.isRefused(RefusedKey{Kind: RefusedUser, Name: user}, wall) {
		return refusal(Unauthenticated, "user", "ask an administrator", "%s is refused", user)
	}
	return nil
}

// isRefused reports whether a refusal without IssuedBefore applies.
func (b *Book) isRefused(key RefusedKey, wall int64) bool {
	if b.refused.Len() == 0 {
		return false
	}
	r, found := b.Refusal(key, 0, wall)
	return found && r.IssuedBefore == 0
}

// issuer is nil if there is none of the name.
func (b *Book) issuer(name string) *Issuer {
	for i := range b.section.Issuers {
		if b.section.Issuers[i].Name == name {
			return &b.section.Issuers[i]
		}
	}
	return nil
}
