package fsm

import (
	"errors"
	"fmt"
	"iter"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
)

// The access book in snapshots: one record for what is small, and one for each account, token and refusal, so that no
// record grows with the book.

// errAccessOrder: the restorer needs the whole book before the first tree, because bindings of nodes name its roles.
var errAccessOrder = errors.New("a record of access is not behind the access book, or follows a record of another kind")

// writeAccess writes nothing for a book that was never changed.
func writeAccess(book *access.Book) func(*recordWriter) error {
	return func(w *recordWriter) error {
		if isUnchanged(book.Revision(), book.Mode()) {
			return nil
		}
		spent := book.SpentSecret()
		record := &logv1.AccessRecord{
			Mode: uint32(book.Mode()), Revision: book.Revision(), Recoveries: book.Recoveries(),
			Spent: encodeFixed(spent[:]), Section: encodeSection(book.Section()),
			Recovery: encodeRecovery(book.LastRecovery()),
		}
		if err := w.writeRecord(&logv1.Record{Record: &logv1.Record_Access{Access: record}}); err != nil {
			return err
		}
		for _, list := range []func(*recordWriter) error{
			writeAll(book.Accounts(), func(a access.Account) *logv1.Record {
				return &logv1.Record{Record: &logv1.Record_Account{Account: encodeAccount(a)}}
			}),
			writeAll(tokensByAccount(book), func(t access.Token) *logv1.Record {
				return &logv1.Record{Record: &logv1.Record_Token{Token: encodeToken(t)}}
			}),
			writeAll(book.RefusedEntries(), func(r access.Refused) *logv1.Record {
				return &logv1.Record{Record: &logv1.Record_Refused{Refused: encodeRefused(r)}}
			}),
		} {
			if err := list(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// isUnchanged reports whether a book is still the first one of a ledger.
func isUnchanged(revision uint64, mode access.Mode) bool { return revision == 0 && mode == access.Open }

// tokensByAccount yields the tokens in the order of [access.State].
func tokensByAccount(book *access.Book) iter.Seq[access.Token] {
	return func(yield func(access.Token) bool) {
		for account := range book.Accounts() {
			for _, token := range book.TokensOf(account.Name) {
				if !yield(token) {
					return
				}
			}
		}
	}
}

func encodeRecovery(r access.Recovery) *logv1.AccessRecovery {
	if r == (access.Recovery{}) {
		return nil
	}
	return &logv1.AccessRecovery{Member: r.Member, Account: r.Account, Index: r.Index, WallMs: r.Wall}
}

func decodeRecovery(r *logv1.AccessRecovery) access.Recovery {
	return access.Recovery{
		Member: r.GetMember(), Account: r.GetAccount(), Index: r.GetIndex(), Wall: r.GetWallMs(),
	}
}

func encodeToken(t access.Token) *logv1.TokenRecord {
	return &logv1.TokenRecord{
		Id: encodeFixed(t.ID[:]), Account: t.Account, Hash: encodeFixed(t.Hash[:]), CreatedMs: t.Created, EndsMs: t.Ends,
		Description: t.Description, Ceiling: uint64(t.Ceiling), Revoked: t.Revoked,
	}
}

func decodeToken(t *logv1.TokenRecord) (access.Token, error) {
	token := access.Token{
		Account: t.GetAccount(), Created: t.GetCreatedMs(), Ends: t.GetEndsMs(), Description: t.GetDescription(),
		Ceiling: access.Verbs(t.GetCeiling()), Revoked: t.GetRevoked(),
	}
	err := errors.Join(decodeFixed(token.ID[:], t.GetId(), "the id of the token"),
		decodeFixed(token.Hash[:], t.GetHash(), "the hash of the token"))
	return token, err
}

// accessReader collects the book of a snapshot and gives it to the restorer.
type accessReader struct {
	state access.State
	// begun is true behind the first record of access, ended behind the first record that is not one.
	begun, ended bool
	// chosen replaces the book of the snapshot, which may have none; nil keeps it.
	chosen func(access.State) access.State
}

func (r *accessReader) addRecord(record *logv1.Record) (isAccess bool, err error) {
	if part, first := record.GetRecord().(*logv1.Record_Access); first {
		if r.begun || r.ended {
			return true, errAccessOrder
		}
		r.begun = true
		return true, r.begin(part.Access)
	}
	switch record.GetRecord().(type) {
	case *logv1.Record_Account, *logv1.Record_Token, *logv1.Record_Refused:
	default:
		return false, nil
	}
	if !r.begun || r.ended {
		return true, errAccessOrder
	}
	return true, r.addElement(record)
}

func (r *accessReader) begin(part *logv1.AccessRecord) error {
	r.state = access.State{
		Mode: access.Mode(min(part.GetMode(), 255)), Revision: part.GetRevision(), Recoveries: part.GetRecoveries(),
		Section: decodeSection(part.GetSection()), Recovery: decodeRecovery(part.GetRecovery()),
	}
	if isUnchanged(r.state.Revision, r.state.Mode) {
		return errors.New("the access book is open and at revision 0: no snapshot has it") // and the next would lose it
	}
	return decodeFixed(r.state.Spent[:], part.GetSpent(), "the hash of the spent secret")
}

// addElement refuses lists beyond their bounds while they are read, so that a damaged snapshot cannot exhaust memory.
func (r *accessReader) addElement(record *logv1.Record) error {
	const maxTokens = access.MaxAccounts * (access.MaxLiveTokens + access.MaxDeadTokens)
	s := &r.state
	switch part := record.GetRecord().(type) {
	case *logv1.Record_Account:
		if len(s.Accounts) >= access.MaxAccounts || len(s.Tokens)+len(s.Refused) > 0 {
			return fmt.Errorf("more than %d accounts, or one that is not in order", access.MaxAccounts)
		}
		s.Accounts = append(s.Accounts, decodeAccount(part.Account))
	case *logv1.Record_Token:
		if len(s.Tokens) >= maxTokens || len(s.Refused) > 0 {
			return fmt.Errorf("more than %d tokens, or one that is not in order", maxTokens)
		}
		token, err := decodeToken(part.Token)
		if err != nil {
			return err
		}
		s.Tokens = append(s.Tokens, token)
	case *logv1.Record_Refused:
		if len(s.Refused) >= access.MaxRefusals {
			return fmt.Errorf("more than %d refusals", access.MaxRefusals)
		}
		s.Refused = append(s.Refused, decodeRefused(part.Refused))
	}
	return nil
}

// finish gives the book to the restorer, once: before the first record that is not one of access.
func (r *accessReader) finish(loader *ledger.Restorer) error {
	if r.ended {
		return nil
	}
	r.ended = true
	if r.chosen != nil {
		r.state = r.chosen(r.state)
	} else if !r.begun {
		return nil
	}
	if err := loader.SetAccess(r.state); err != nil {
		return fmt.Errorf("the access book is broken: %w", err)
	}
	r.state = access.State{} // the ledger has it now
	return nil
}
