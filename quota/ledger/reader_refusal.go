package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// question is the memory that a question of a reader needs. Readers share the ledger, so they cannot use its own.
type question struct {
	caller caller
	now    quota.Stamp
	rights callerRights
	tables [8]*access.Table // for the path, of which most are shorter
}

// RefusalOf returns the outcome of a command that its caller may not give in the present state, and false if the caller
// may give it. Of commands that need a plan it knows only what is known without: a dry run tells the rest. Only a
// guarded ledger refuses.
//
// Ask it before a command is written to the log, so that callers without rights cannot fill the log. What counts is
// what is decided when the command is carried out.
//
// Whether an id exists for its caller is decided by an entry, also if the id is that of another caller: only an entry
// comes behind the requests of the caller that are on their way, one of which may be for this id. A caller without a
// credential is told at once that there is none.
func (r Reader) RefusalOf(by *access.Caller, c quota.Command) (Outcome, bool) {
	if r.ledger.book.Mode() != access.Guarded {
		return Outcome{}, false
	}
	now := quota.Stamp{At: r.ledger.now.At, Wall: r.wallNow()}
	asked := &question{caller: caller{who: by}, now: now}
	asked.rights = callerRights{
		env: &r.ledger.environment, caller: &asked.caller, now: &asked.now, path: asked.tables[:0],
	}
	g := r.ledger.guardFor(&asked.rights)
	var err *quota.Error
	if g.caller.rights, err = g.identify(by); err == nil {
		err = g.permit(c)
		if err == nil && by.Kind == access.Anonymous {
			err = g.refuseStrangersTrees(c)
		}
	}
	if err != nil && isUnknownID(err) && by.Kind != access.Anonymous {
		err = nil
	}
	if err == nil {
		return Outcome{}, false
	}
	out := Outcome{Refused: err, Now: now.At}
	if id := g.caller.rights; id != nil && id.Kind() != access.System {
		r.id = id
		out = r.RedactOutcome(out)
	}
	return out, true
}

// isUnknownID is true for the refusal of an id that does not exist, or not for the caller.
func isUnknownID(err *quota.Error) bool { return err.Kind == quota.NotFound && err.Field == "id" }
