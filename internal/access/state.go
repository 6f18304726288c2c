package access

import "slices"

// State is a book as plain values, for snapshots. [Book.State] and [Load] are inverse.
type State struct {
	Mode       Mode
	Revision   uint64
	Recoveries uint64
	Spent      [32]byte
	// Recovery is the last one; zero if Recoveries is 0.
	Recovery Recovery
	// Section is in canonical form.
	Section Section
	// Accounts are in the order of their names, Refused in that of their keys.
	Accounts []Account
	// Tokens are in the order of their accounts' names; those of one account are oldest first, because the oldest is
	// forgotten first.
	Tokens  []Token
	Refused []Refused
}

// State returns the content of the book. The caller must not change lists of its elements.
func (b *Book) State() State {
	s := State{
		Mode: b.mode, Revision: b.revision, Recoveries: b.recoveries, Spent: b.spent, Section: b.section,
		Recovery: b.recovery,
		Accounts: slices.Collect(b.Accounts()), Refused: slices.Collect(b.RefusedEntries()),
	}
	for name := range b.accounts.All() {
		s.Tokens = append(s.Tokens, b.TokensOf(name)...)
	}
	return s
}

// Load returns the book of a state. It refuses a state that no book has: malformed elements, lists out of order or
// beyond a bound, tokens without an account. It trusts the hashes and the times.
func Load(s State) (*Book, *Error) {
	b := &Book{mode: s.Mode, revision: s.Revision, recoveries: s.Recoveries, spent: s.Spent, recovery: s.Recovery}
	if err := s.checkRecovery(); err != nil {
		return nil, err
	}
	if s.Mode > Guarded {
		return nil, invalid("mode", oneOf(modeNames[:]), "%d is not a mode", uint8(s.Mode))
	}
	section := s.Section.Canonical()
	roles, err := section.Check()
	if err != nil {
		return nil, err.below("section")
	}
	b.installSection(section, roles)
	for _, load := range []func(State) *Error{b.loadAccounts, b.loadTokens, b.loadRefused} {
		if err := load(s); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (s *State) checkRecovery() *Error {
	if s.Recoveries == 0 && s.Recovery != (Recovery{}) {
		return invalid("recovery", "", "access was never recovered, and there is a last recovery")
	}
	if err := checkText("recovery.member", s.Recovery.Member); err != nil {
		return err
	}
	return checkText("recovery.account", s.Recovery.Account)
}

func (b *Book) loadAccounts(s State) *Error {
	if len(s.Accounts) > MaxAccounts {
		return refusal(Full, "accounts", "10,000 are allowed", "there are %d accounts", len(s.Accounts))
	}
	for i, a := range s.Accounts {
		if err := a.check(); err != nil {
			return err.below(indexed("accounts", i))
		}
		if i > 0 && s.Accounts[i-1].Name >= a.Name {
			return outOfOrder("accounts", i)
		}
		b.accounts = b.accounts.With(a.Name, &accountRecord{Account: a})
	}
	return nil
}

func (b *Book) loadTokens(s State) *Error {
	for i, t := range s.Tokens {
		record, found := b.accounts.Get(t.Account)
		_, again := b.tokens.Get(t.ID.number())
		switch {
		case !found:
			return noAccount(indexed("tokens", i), t.Account)
		case again:
			return refusal(AlreadyExists, indexed("tokens", i), "", "token %s is given twice", t.ID)
		case i > 0 && s.Tokens[i-1].Account > t.Account:
			return outOfOrder("tokens", i)
		case len(record.tokens) >= MaxLiveTokens+MaxDeadTokens:
			return refusal(Full, indexed("tokens", i), "", "account %s has %d tokens", t.Account, len(record.tokens))
		case t.Ceiling == 0 || t.Ceiling&^AllVerbs != 0:
			return invalid(indexed("tokens", i), "", "the ceiling has the bits %#x", uint64(t.Ceiling))
		}
		record.tokens = append(record.tokens, t.ID) // the record is of this load alone
		b.tokens = b.tokens.With(t.ID.number(), &t)
	}
	return nil
}

func (b *Book) loadRefused(s State) *Error {
	if len(s.Refused) > MaxRefusals {
		return refusal(Full, "refused", "10,000 are allowed", "there are %d refusals", len(s.Refused))
	}
	for i, r := range s.Refused {
		if err := r.check(); err != nil {
			return err.below(indexed("refused", i))
		}
		if i > 0 && s.Refused[i-1].Compare(r.RefusedKey) >= 0 {
			return outOfOrder("refused", i)
		}
		b.refused = b.refused.With(r.text(), &r)
	}
	return nil
}

func outOfOrder(list string, i int) *Error {
	return invalid(indexed(list, i), "", "the list is not in order, or has an element twice")
}
