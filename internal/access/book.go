package access

import (
	"iter"
	"slices"

	"github.com/quorate/quorate/internal/access/internal/persist"
)

// Mode says whether rights count. It is a fact of the whole cluster. The numbers are part of the log format.
type Mode uint8

// The closed list of modes.
const (
	// Open lets every caller do everything.
	Open Mode = iota
	// Watching lets every caller do everything and reports what Guarded would refuse.
	Watching
	// Guarded refuses what no binding gives. Nothing leads out of it; [Bootstrap] leads back in.
	Guarded
)

var modeNames = [...]string{"open", "watching", "guarded"}

// String is the mode's name in texts.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, *Error) {
	if i := slices.Index(modeNames[:], name); i >= 0 {
		return Mode(i), nil
	}
	return Open, invalid("", oneOf(modeNames[:]), "%q is not a mode", clip(name))
}

// Book is everything that the ledger knows about access beside the bindings of nodes. A book never changes:
// [Book.Apply] returns another one that shares what is equal. A reader may therefore keep a book without a lock and
// without a copy, and taking a change back is keeping the book before it.
type Book struct {
	mode       Mode
	revision   uint64
	recoveries uint64
	// spent is the hash of the secret that Bootstrap has used last; zero before the first one.
	spent [32]byte
	// recovery is the last one; zero before the first.
	recovery Recovery

	section Section
	// roles and cluster follow from the section.
	roles   Roles
	cluster *Table

	accounts persist.Map[*accountRecord]
	tokens   persist.Trie[*Token]
	refused  persist.Map[*Refused]
}

// accountRecord has the ids of the tokens, oldest first.
type accountRecord struct {
	Account
	tokens []TokenID
}

// NewBook returns an empty book in a mode.
func NewBook(mode Mode) *Book { return &Book{mode: mode} }

// Mode says whether rights count.
func (b *Book) Mode() Mode { return b.mode }

// Revision is the number of changes since the book was empty. Equal revisions of one ledger are equal books.
func (b *Book) Revision() uint64 { return b.revision }

// Recoveries is how often access was recovered by a member's machine.
func (b *Book) Recoveries() uint64 { return b.recoveries }

// Recovery says how access was recovered.
type Recovery struct {
	// Member is the id of the member on whose machine it was begun.
	Member string
	// Account is the account that got root.
	Account string
	// Index is that of the log entry, Wall its wall time in milliseconds since 1970.
	Index uint64
	Wall  int64
}

// LastRecovery is how access was recovered last; zero if it never was.
func (b *Book) LastRecovery() Recovery { return b.recovery }

// SpentSecret is the hash of the secret that bootstrap has used last; zero if none has been used.
func (b *Book) SpentSecret() [32]byte { return b.spent }

// Section is the section in canonical form. The caller must not change its lists.
func (b *Book) Section() Section { return b.section }

// Roles are the built-in and custom roles.
func (b *Book) Roles() Roles { return b.roles }

// Cluster is the compiled table of the bindings on the cluster: the last element of each path.
func (b *Book) Cluster() *Table { return b.cluster }

// Account returns the account of a name. The caller must not change its groups.
func (b *Book) Account(name string) (Account, bool) {
	record, found := b.accounts.Get(name)
	if !found {
		return Account{}, false
	}
	return record.Account, true
}

// Accounts yields all accounts in the order of their names.
func (b *Book) Accounts() iter.Seq[Account] {
	return func(yield func(Account) bool) {
		for _, record := range b.accounts.All() {
			if !yield(record.Account) {
				return
			}
		}
	}
}

// Token returns the record of a token in constant time. It says nothing about whether the token is valid; see
// [Book.Identify].
func (b *Book) Token(id TokenID) (Token, bool) {
	t, found := b.tokens.Get(id.number())
	if !found {
		return Token{}, false
	}
	return *t, true
}

// Tokens yields all tokens in the order of their ids.
func (b *Book) Tokens() iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for _, t := range b.tokens.All() {
			if !yield(*t) {
				return
			}
		}
	}
}

// TokensOf returns the tokens of an account, oldest first.
func (b *Book) TokensOf(account string) []Token {
	record, found := b.accounts.Get(account)
	if !found {
		return nil
	}
	tokens := make([]Token, 0, len(record.tokens))
	for _, id := range record.tokens {
		t, _ := b.Token(id)
		tokens = append(tokens, t)
	}
	return tokens
}

// RefusedEntries yields all refusals in the order of their keys, those that have ended too.
func (b *Book) RefusedEntries() iter.Seq[Refused] {
	return func(yield func(Refused) bool) {
		for _, r := range b.refused.All() {
			if !yield(*r) {
				return
			}
		}
	}
}

// Refusal returns the refusal that applies to a credential that was issued at a time, and false if none does. Times are
// milliseconds since 1970; a credential whose time is not known is issued at 0.
func (b *Book) Refusal(key RefusedKey, issued, wall int64) (Refused, bool) {
	r, found := b.refused.Get(key.text())
	if !found || wall >= r.Until || r.IssuedBefore != 0 && issued >= r.IssuedBefore {
		return Refused{}, false
	}
	return *r, true
}
