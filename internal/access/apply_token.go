package access

import "slices"

func (d *draft) createToken(c CreateToken) *Error {
	if unknown := c.Ceiling &^ AllVerbs; c.Ceiling == 0 || unknown != 0 {
		return invalid("ceiling", "name at least one verb; all verbs are no ceiling", "the ceiling has the bits %#x",
			uint64(c.Ceiling))
	}
	if err := checkText("description", c.Description); err != nil {
		return err
	}
	if old, found := d.tokens.Get(c.Token.ID.number()); found {
		if old.Account == c.Account && old.Hash == c.Token.Hash && old.Description == c.Description &&
			old.Ceiling == c.Ceiling {
			return nil // repeated; the end may have been shortened since
		}
		return tokenTaken(c.Token.ID)
	}
	return d.addToken(Token{
		ID: c.Token.ID, Account: c.Account, Hash: c.Token.Hash, Created: d.at.Wall, Ends: c.Token.Ends,
		Description: c.Description, Ceiling: c.Ceiling,
	})
}

func (d *draft) rotateToken(c RotateToken) *Error {
	old, found := d.tokens.Get(c.Old.number())
	switch {
	case !found:
		return noToken("old", c.Old)
	case c.Overlap < 0 || c.Overlap > MaxOverlap:
		return invalid("overlap", "at most 7 days are allowed", "%d ms is not an overlap", c.Overlap)
	}
	if taken, again := d.tokens.Get(c.Token.ID.number()); again {
		if taken.Account == old.Account && taken.Hash == c.Token.Hash && c.Token.ID != c.Old {
			return nil // repeated
		}
		return tokenTaken(c.Token.ID)
	}
	if !old.IsLive(d.at.Wall) {
		return refusal(Conflict, "old", "create a new token", "token %s is revoked or has ended", c.Old)
	}
	ends := c.Token.Ends
	if d.at.KeepsLife {
		ends = min(ends, d.at.Wall+old.Life())
	}
	ended := *old
	ended.Ends = min(old.Ends, d.at.Wall+c.Overlap)
	d.setToken(&ended, old.describe())
	return d.addToken(Token{
		ID: c.Token.ID, Account: old.Account, Hash: c.Token.Hash, Created: d.at.Wall, Ends: ends,
		Description: old.Description, Ceiling: old.Ceiling,
	})
}

func (d *draft) revokeToken(id TokenID) *Error {
	old, found := d.tokens.Get(id.number())
	if !found {
		return noToken("id", id)
	}
	if old.Revoked != 0 {
		return nil
	}
	revoked := *old
	revoked.Revoked = max(d.at.Index, 1)
	d.setToken(&revoked, old.describe())
	return nil
}

// addToken checks and stores a new token, and forgets the oldest dead ones of its account beyond the bound.
func (d *draft) addToken(t Token) *Error {
	if t.Hash == [32]byte{} {
		return invalid("token.hash", "send the SHA-256 of the secret", "the hash is zero")
	}
	life := t.Ends - d.at.Wall
	if longest := d.section.tokenLife(); life <= 0 || life > longest {
		return refusal(Invalid, "token.ends", "choose a time in the future, within the longest life of tokens",
			"the token would live for %d ms; at most %d are allowed", life, longest)
	}
	record, found := d.accounts.Get(t.Account)
	if !found {
		return noAccount("account", t.Account)
	}
	live := slices.DeleteFunc(slices.Clone(record.tokens), func(id TokenID) bool { return !d.isLive(id) })
	if len(live) >= MaxLiveTokens {
		return refusal(Full, "account", "revoke one of them first", "account %s has %d live tokens, the most allowed",
			t.Account, len(live))
	}
	kept := slices.Clone(record.tokens)
	for dead := len(kept) - len(live); dead > MaxDeadTokens; dead-- {
		oldest := slices.IndexFunc(kept, func(id TokenID) bool { return !d.isLive(id) })
		d.forgetToken(kept[oldest])
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	d.accounts = d.accounts.With(t.Account, &accountRecord{Account: record.Account, tokens: append(kept, t.ID)})
	d.setToken(&t, "")
	return nil
}

func (d *draft) isLive(id TokenID) bool {
	t, found := d.tokens.Get(id.number())
	return found && t.IsLive(d.at.Wall)
}

// setToken stores a record, which must be new: records in a book are shared.
func (d *draft) setToken(t *Token, before string) {
	d.tokens = d.tokens.With(t.ID.number(), t)
	d.note("token", t.ID.String(), before, t.describe())
}

// forgetToken removes a record that its account no longer lists.
func (d *draft) forgetToken(id TokenID) {
	if old, found := d.tokens.Get(id.number()); found {
		d.tokens = d.tokens.Without(id.number())
		d.note("token", id.String(), old.describe(), "")
	}
}

func noToken(field string, id TokenID) *Error {
	return refusal(NotFound, field, "list the tokens of the account", "there is no token %s", id)
}

func tokenTaken(id TokenID) *Error {
	return refusal(AlreadyExists, "token.id", "draw another id", "token %s exists with other content", id)
}
