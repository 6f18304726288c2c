package quota

// plan is a checked change of configuration that has not been carried out. A plan with a refusal does nothing.
type plan struct {
	refused *Error
	changes []Change
	// commit carries it out; it cannot fail.
	commit func()
	// over lists the nodes that the change would leave over a limit, at most MaxOver.
	over []Overuse
}

func refusedPlan(err *Error) plan { return plan{refused: err} }

// configure carries out a plan and remembers it in the history.
func (l *Ledger) configure(meta ChangeMeta, p plan) Outcome {
	if out, known := l.checkMeta(meta); known {
		return out
	}
	if p.refused != nil {
		return Outcome{Refused: p.refused}
	}
	if len(p.changes) > 0 {
		p.commit()
		l.remember(meta, p.changes)
	}
	return Outcome{Configuration: &Configuration{Revision: l.revision, Changes: p.changes, Over: p.over}}
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

// remember puts a change into the history and forgets the oldest beyond the bound.
func (l *Ledger) remember(m ChangeMeta, changes []Change) {
	l.revision++
	r := &Revision{
		Number: l.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
		Wall: l.now.Wall, Changes: changes[:min(len(changes), MaxRevisionChanges)], ChangeCount: len(changes),
	}
	l.addRevision(r)
}

func (l *Ledger) addRevision(r *Revision) {
	l.revisions = append(l.revisions, r)
	if r.RequestID != "" {
		l.requests[r.RequestID] = r
	}
	if len(l.revisions) > l.bounds.Revisions {
		oldest := l.revisions[0]
		l.revisions[0] = nil
		l.revisions = l.revisions[1:]
		if l.requests[oldest.RequestID] == oldest {
			delete(l.requests, oldest.RequestID)
		}
	}
}
