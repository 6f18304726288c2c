package quota

// plan is a checked change of configuration that has not been carried out. A plan with a refusal does nothing.
type plan struct {
	refused *Error
	changes []Change
	// undo is how to take the changes back, one for each tree that has any.
	undo []TreeUndo
	// commit carries it out; it cannot fail.
	commit func()
	// over lists what the change would leave over a limit, at most MaxOver.
	over []Overuse
	// effects works out what the change would mean for the requests to come, before it is carried out.
	effects func() *Effects
}

func refusedPlan(err *Error) plan { return plan{refused: err} }

// configure carries out a plan and remembers it in the history.
func (l *Ledger) configure(meta ChangeMeta, p plan) Outcome {
	if out, settled := l.judge(meta, p); settled {
		return out
	}
	if len(p.changes) > 0 {
		p.commit()
		l.remember(meta, p)
	}
	return Outcome{Configuration: &Configuration{Revision: l.revision, Changes: p.changes, Over: p.over}}
}

// judge answers a repeated request with its first result, and refuses a wrong expectation, a plan that cannot be, and
// whoever may not.
func (l *Ledger) judge(m ChangeMeta, p plan) (Outcome, bool) {
	if out, known := l.checkMeta(m); known {
		return out, true
	}
	if p.refused != nil {
		return Outcome{Refused: p.refused}, true
	}
	if err := l.permit(m, p.changes); err != nil {
		return Outcome{Refused: err}, true
	}
	return Outcome{}, false
}

// checkMeta answers a repeated request with its first result, and refuses a wrong expectation.
func (l *Ledger) checkMeta(m ChangeMeta) (Outcome, bool) {
	switch {
	case len(m.Actor) > MaxActor:
		return Outcome{Refused: refuse(Invalid, "actor", "the actor has %d bytes; at most %d are allowed", len(m.Actor), MaxActor)}, true
	case len(m.Reason) > MaxReason:
		return Outcome{Refused: refuse(Invalid, "reason", "the reason has %d bytes; at most %d are allowed", len(m.Reason), MaxReason)}, true
	case !validVisible(m.RequestID, MaxID):
		return Outcome{Refused: refuse(Invalid, "request_id", "a request id is at most %d visible ASCII characters", MaxID)}, true
	}
	if first := l.requests[m.RequestID]; first != nil {
		if first.Fingerprint != m.Fingerprint {
			return Outcome{Refused: refuse(IDTaken, "request_id", "request %q made revision %d with other content; use another request id", m.RequestID, first.Number)}, true
		}
		return Outcome{Configuration: &Configuration{Revision: first.Number, Changes: first.Changes}, Repeated: true}, true
	}
	if m.ExpectedRevision != nil && *m.ExpectedRevision != l.revision {
		return Outcome{Refused: refuse(RevisionMismatch, "expected_revision", "the configuration is at revision %d, not %d; read it again and decide anew", l.revision, *m.ExpectedRevision)}, true
	}
	return Outcome{}, false
}
