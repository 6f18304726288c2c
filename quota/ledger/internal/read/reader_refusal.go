package read

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/permit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// question is the memory that a question of a reader needs. Readers share the ledger, so they cannot use its own.
type question struct {
	caller state.Caller
	now    quota.Stamp
	rights state.CallerRights
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
func (r Reader) RefusalOf(caller *access.Caller, c quota.Command) (state.Outcome, bool) {
	if r.state.Book.Mode() != access.Guarded {
		return state.Outcome{}, false
	}
	now := quota.Stamp{At: r.state.Now.At, Wall: r.WallNow()}
	asked := &question{caller: state.Caller{Who: caller}, now: now}
	asked.rights = state.CallerRights{
		Env: &r.state.Environment, Caller: &asked.caller, Now: &asked.now, Path: asked.tables[:0],
	}
	g := permit.GuardFor(r.state, &asked.rights)
	var err *quota.Error
	if g.Caller.Rights, err = g.Identify(caller); err == nil {
		err = g.Permit(c)
		if err == nil && caller.Kind == access.Anonymous {
			err = g.RefuseStrangersTrees(c)
		}
	}
	if err != nil && isUnknownID(err) && caller.Kind != access.Anonymous {
		err = nil
	}
	if err == nil {
		return state.Outcome{}, false
	}
	out := state.Outcome{Refused: err, Now: now.At}
	if id := g.Caller.Rights; id != nil && id.Kind() != access.System {
		r.id = id
		out = r.RedactOutcome(out)
	}
	return out, true
}

// isUnknownID is true for the refusal of an id that does not exist, or not for the caller.
func isUnknownID(err *quota.Error) bool { return err.Kind == quota.NotFound && err.Field == "id" }
