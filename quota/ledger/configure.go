package ledger

import "github.com/quorate/quorate/quota"

// plan is a checked change of configuration that has not been carried out. A plan with a refusal does nothing.
type plan struct {
	refused *quota.Error
	changes []quota.Change
	// undo is how to take the changes back, one for each tree that has any.
	undo []quota.TreeUndo
	// commit carries it out; it cannot fail.
	commit func()
	// over lists what the change would leave over a limit, at most MaxOver.
	over []quota.Overuse
	// effects works out what the change would mean for the requests to come, before it is carried out.
	effects func() *quota.Effects
}

func refusedPlan(err *quota.Error) plan { return plan{refused: err} }

// planner computes changes of the configuration and installs them.
type planner struct{ *Ledger }

// configure carries out a plan and remembers it in the history.
// A dry run answers the present revision, because the change would make the next one, and the effects of the change.
func (pl planner) configure(meta quota.ChangeMeta, p plan, m mode) Outcome {
	if out, settled := pl.judge(meta, p); settled {
		return out
	}
	answer := quota.Configuration{Changes: p.changes, Over: p.over}
	switch {
	case m == dryRun:
		answer.Effects = p.effects()
	case len(p.changes) > 0:
		p.commit()
		pl.history.remember(meta, p)
	}
	answer.Revision = pl.history.revision
	return Outcome{Configuration: &answer}
}

// judge answers a repeated request with its first result, and refuses a wrong expectation, a plan that cannot be, and
// whoever may not.
func (pl planner) judge(m quota.ChangeMeta, p plan) (Outcome, bool) {
	if out, known := pl.history.checkMeta(m); known {
		return out, true
	}
	if p.refused != nil {
		return Outcome{Refused: p.refused}, true
	}
	if err := pl.forest.permit(m, p.changes); err != nil {
		return Outcome{Refused: err}, true
	}
	return Outcome{}, false
}

// checkMeta answers a repeated request with its first result, and refuses a wrong expectation.
func (h *history) checkMeta(m quota.ChangeMeta) (Outcome, bool) {
	switch {
	case len(m.Actor) > quota.MaxActor:
		return Outcome{Refused: quota.Errorf(quota.Invalid, "actor", "the actor has %d bytes; at most %d are allowed", len(m.Actor), quota.MaxActor)}, true
	case len(m.Reason) > quota.MaxReason:
		return Outcome{Refused: quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed", len(m.Reason), quota.MaxReason)}, true
	case !quota.IsVisible(m.RequestID, quota.MaxID):
		return Outcome{Refused: quota.Errorf(quota.Invalid, "request_id", "a request id is at most %d visible ASCII characters", quota.MaxID)}, true
	}
	if first := h.requests[m.RequestID]; first != nil {
		if first.Fingerprint != m.Fingerprint {
			return Outcome{Refused: quota.Errorf(quota.IDTaken, "request_id", "request %q made revision %d with other content; use another request id", m.RequestID, first.Number)}, true
		}
		return Outcome{Configuration: &quota.Configuration{Revision: first.Number, Changes: first.Changes}, Repeated: true}, true
	}
	if m.ExpectedRevision != nil && *m.ExpectedRevision != h.revision {
		return Outcome{Refused: quota.Errorf(quota.RevisionMismatch, "expected_revision", "the configuration is at revision %d, not %d; read it again and decide anew", h.revision, *m.ExpectedRevision)}, true
	}
	return Outcome{}, false
}
