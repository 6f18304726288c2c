package access

import "slices"

type draft struct {
	Book
	at          Moment
	differences []Difference
}

// Apply carries out a command. It returns a refusal, or the change with the book before it. The book itself stays as it
// is, and equal books, commands and moments give equal results.
func (b *Book) Apply(c Command, at Moment) (Change, *Error) {
	d := &draft{Book: *b, at: at}
	if err := d.apply(c); err != nil {
		return Change{}, err
	}
	if len(d.differences) == 0 {
		return Change{Before: b, After: b}, nil
	}
	d.revision++
	after := d.Book
	if !after.HasAdministrator(at.Wall) && b.HasAdministrator(at.Wall) {
		return Change{}, refusal(LastAdministrator, "", "give another one root or security-admin and a way to log in first",
			"no caller who manages access could log in any more")
	}
	return Change{Before: b, After: &after, Differences: d.differences}, nil
}

func (d *draft) apply(c Command) *Error {
	switch c := c.(type) {
	case CreateAccount:
		return d.createAccount(c.Account)
	case UpdateAccount:
		return d.updateAccount(c)
	case DeleteAccount:
		return d.deleteAccount(c.Name)
	case CreateToken:
		return d.createToken(c)
	case RotateToken:
		return d.rotateToken(c)
	case RevokeToken:
		return d.revokeToken(c.ID)
	case Refuse:
		return d.refuse(c.Refused)
	case Unrefuse:
		return d.unrefuse(c.Key)
	case SetMode:
		return d.setMode(c.Mode)
	case ReplaceSection:
		return d.replaceSection(c.Section)
	case Bootstrap:
		return d.bootstrap(c)
	}
	return invalid("", "", "the command is not known")
}

// note records a difference, unless there is none.
func (d *draft) note(object, name, before, after string) {
	if before != after {
		d.differences = append(d.differences, Difference{object, name, before, after})
	}
}

func (d *draft) createAccount(a Account) *Error {
	a.Groups = canonicalNames(a.Groups)
	if err := a.check(); err != nil {
		return err.below("account")
	}
	old, found := d.accounts.Get(a.Name)
	switch {
	case found && old.equal(a):
		return nil
	case found:
		return refusal(AlreadyExists, "account.name", "update it, or choose another name",
			"account %s exists with other content", a.Name)
	case d.accounts.Len() >= MaxAccounts:
		return refusal(Full, "account", "delete accounts that are not used", "there are %d accounts, the most allowed",
			d.accounts.Len())
	}
	d.setAccount(&accountRecord{Account: a}, "", a.describe())
	return nil
}

func (d *draft) updateAccount(c UpdateAccount) *Error {
	a := c.Account
	old, found := d.accounts.Get(a.Name)
	if !found {
		return noAccount("name", a.Name)
	}
	if c.KeepDescription {
		a.Description = old.Description
	}
	if c.KeepGroups {
		a.Groups = old.Groups
	}
	if c.KeepDisabled {
		a.Disabled = old.Disabled
	}
	a.Groups = canonicalNames(a.Groups)
	if err := a.check(); err != nil {
		return err
	}
	d.setAccount(&accountRecord{Account: a, tokens: old.tokens}, old.describe(), a.describe())
	return nil
}

func (d *draft) deleteAccount(name string) *Error {
	old, found := d.accounts.Get(name)
	if !found {
		return noAccount("name", name)
	}
	for _, id := range old.tokens {
		d.forgetToken(id)
	}
	d.accounts = d.accounts.Without(name)
	d.note("account", name, old.describe(), "")
	return nil
}

// setAccount stores a record, which must be new: records in a book are shared.
func (d *draft) setAccount(record *accountRecord, before, after string) {
	d.accounts = d.accounts.With(record.Name, record)
	d.note("account", record.Name, before, after)
}

func noAccount(field, name string) *Error {
	return refusal(NotFound, field, "create it first", "there is no account %q", clip(name))
}

func (d *draft) setMode(m Mode) *Error {
	switch {
	case m > Guarded:
		return invalid("mode", oneOf(modeNames[:]), "%d is not a mode", uint8(m))
	case m < d.mode && d.mode == Guarded:
		return refusal(Conflict, "mode", "recover access on a member's machine if nobody can log in",
			"the cluster is guarded and stays so")
	case m == Guarded && d.mode != Guarded && !d.HasAdministrator(d.at.Wall):
		return refusal(Conflict, "mode",
			"bind root or security-admin on the cluster, without an end, to a caller that can log in",
			"no administrator could log in")
	}
	d.note("mode", "", d.mode.String(), m.String())
	d.mode = m
	return nil
}

func (d *draft) refuse(r Refused) *Error {
	if err := r.check(); err != nil {
		return err.below("refused")
	}
	if r.Until <= d.at.Wall || r.Until-d.at.Wall > MaxRefusalSpan {
		return invalid("refused.until", "choose a time in the future, at most 3660 days away", "%d is not a time to end",
			r.Until)
	}
	key := r.text()
	old, found := d.refused.Get(key)
	if !found && d.refused.Len() >= MaxRefusals {
		d.removeEnded()
	}
	if !found && d.refused.Len() >= MaxRefusals {
		return refusal(Full, "refused", "revoke tokens and disable accounts instead, or remove refusals",
			"there are %d refusals, the most allowed", d.refused.Len())
	}
	before := ""
	if found {
		before = old.describe()
	}
	d.refused = d.refused.With(key, &r)
	d.note("refusal", r.RefusedKey.describe(), before, r.describe())
	return nil
}

func (d *draft) unrefuse(key RefusedKey) *Error {
	old, found := d.refused.Get(key.text())
	if !found {
		return refusal(NotFound, "key", "list the refusals", "there is no refusal of %s", clip(key.describe()))
	}
	d.refused = d.refused.Without(key.text())
	d.note("refusal", key.describe(), old.describe(), "")
	return nil
}

// removeEnded forgets refusals that have ended. It runs when the list is full, because that is when it matters, and its
// result depends on the entry's time alone.
func (d *draft) removeEnded() {
	for key, r := range d.refused.All() {
		if d.at.Wall >= r.Until {
			d.refused = d.refused.Without(key)
		}
	}
}

// equalRoles compares custom roles; the built-in ones are always equal.
func equalRoles(a, b Roles) bool { return slices.Equal(a.custom, b.custom) }
