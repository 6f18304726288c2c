package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// UndoList reverts steps, the last one first. It is the only way to revert a change of the state.
type UndoList []func()

func (u *UndoList) OnUndo(step func()) { *u = append(*u, step) }

// Append adds the steps of another list behind its own.
func (u *UndoList) Append(other UndoList) { *u = append(*u, other...) }

// Rollback reverts every step. A second call does nothing.
func (u *UndoList) Rollback() {
	for _, step := range slices.Backward(*u) {
		step()
	}
	*u = nil
}

// Admission is the admission of one allocation: begin, decide, then commit or roll back. It is used as a value, because
// most admissions check plain limits and change nothing before the commit; staged has what the others change while they
// decide.
type Admission struct {
	State      *state.State
	Allocation *state.Allocation
	// basic is Allocation.IsBasic, asked when the transaction began: decide and commit then skip everything else.
	basic  bool
	staged *staged
	// Change is set for a resize in the queue; then allocation is the record after it.
	Change *holdingChange
}

// Begin prepares an allocation that has its claims to be held under the next fence.
func Begin(s *state.State, a *state.Allocation) Admission {
	a.SetGrant(s.Allocations.Fence+1, s.Now)
	if a.More != nil {
		if a.More.Mode == quota.Reserve {
			a.More.Until = s.Now.At + quota.Instant(a.More.ReserveFor)
		} else {
			a.More.BeginHolding(s.Now)
		}
		assignGroups(a)
	}
	return Admission{State: s, Allocation: a, basic: a.IsBasic()}
}

// Decide reports whether the allocation may be held. If it may, commit or rollback must follow; otherwise nothing has
// changed.
func (t *Admission) Decide() quota.Decision {
	if len(t.State.Forest.OnHold) == 0 {
		return t.decideLimits()
	}
	held := holdViolations(t.Allocation.Claims)
	d := t.decideLimits()
	if len(held) == 0 {
		return d
	}
	t.Rollback()
	t.staged = nil // who may not be admitted revokes no leases
	return quota.Decision{Violations: append(held, d.Violations...)}
}

func decisionFor(violations []quota.Violation) quota.Decision {
	return quota.Decision{Granted: len(violations) == 0, Violations: violations}
}

// decideLimits is Decide without the nodes on hold.
func (t *Admission) decideLimits() quota.Decision {
	s, a := t.State, t.Allocation
	if t.basic {
		return decisionFor(violationsOf(state.Asker{}, a.Claims)) // the turn of the request does not matter without queues
	}
	if hasPlainClaims(a) {
		violations := violationsOf(s.AskerFor(a), a.Claims)
		violations = append(violations, checkPrincipals(&s.Environment, a)...)
		return decisionFor(append(violations, checkItems(&s.Inventory, a)...))
	}
	if fitsAtHome(a) && len(checkItems(&s.Inventory, a)) == 0 {
		return quota.Decision{Granted: true}
	}
	if behind := s.AskerFor(a).SoftOvertakeViolations(a.Claims); len(behind) > 0 {
		return quota.Decision{Violations: everyViolation(s, a, nil, behind)}
	}
	t.staged = beginStaged(s, a)
	return t.staged.decide(a)
}

// Rollback reverts what decide has changed. It may be called after any decision.
func (t *Admission) Rollback() {
	if t.staged != nil {
		t.staged.rollback()
	}
}

// HasRoom is true if the ledger may hold the admitted allocation too, after its victims have ended.
func (t *Admission) HasRoom() bool {
	held := t.State.Allocations.Held.Len() - len(t.victims())
	if t.staged != nil {
		held-- // the new allocation is counted already
	}
	return held < t.State.Bounds.Held
}

func (t *Admission) victims() []*state.Allocation {
	if t.staged == nil {
		return nil
	}
	return t.staged.victims
}

func (t *Admission) placements() []quota.ClaimInfo {
	a := t.Allocation
	if t.staged != nil {
		a = t.staged.requester()
	}
	return a.CurrentInfo().Claims
}

// commit takes as since when the request entered the queue, 0 if it did not.
func (t *Admission) commit(since quota.Instant) *state.Allocation {
	s, a := t.State, t.Allocation
	s.Allocations.Fence++
	if t.staged == nil {
		attachDynamicNodes(&s.Forest, a)
		s.Allocations.ByID.Put(a)
		s.Allocations.Held.Set(a.Fence(), a)
		for i := range a.Claims {
			s.Allocations.ChargeClaim(a, i)
		}
	} else {
		a = t.staged.commit()
	}
	if t.basic {
		markGranted(s, a, nil)
	} else {
		t.commitExtras(a)
	}
	s.Journal.Facts = append(s.Journal.Facts, state.Fact{Kind: state.FactGranted, Allocation: a, Since: since})
	return a
}

// commitExtras commits what only an allocation that is not basic can have: items, an undo record, victims, a deadline,
// and waiting requests that the grant concerns.
func (t *Admission) commitExtras(a *state.Allocation) {
	s := t.State
	takeItems(&s.Inventory, a)
	t.announceVictims() // before the undo record, which then knows the items that replace removed ones
	t.rememberUndo(a)
	s.Deadlines.Add(a)
	s.Queue.UnblockGranted(a)
}

// announceVictims unblocks the requests that wait for items of the victims, and replaces those that were removed.
func (t *Admission) announceVictims() {
	for _, v := range t.victims() {
		announceReturned(&t.State.Inventory, v)
	}
}

// markGranted marks the trees that a grant has changed: its own, and those of its victims. It returns the versions
// before and after if the grant is a reservation.
func markGranted(s *state.State, a *state.Allocation, victims []*state.Allocation) []state.TreeVersion {
	var versions []state.TreeVersion
	first := s.Forest.Version
	mark := func(a *state.Allocation, keep bool) {
		for i := range a.Claims {
			t := a.Claims[i].At.Tree
			if t.Version > first {
				continue
			}
			before := t.Version
			s.Forest.MarkChanged(t)
			if keep {
				versions = append(versions, state.TreeVersion{Tree: t.Name, Before: before, After: t.Version})
			}
		}
	}
	reserved := a.State() == quota.Reserved
	mark(a, reserved)
	for _, v := range victims {
		mark(v, reserved)
	}
	return versions
}

// AdmissionOf prepares what a waiter asks for, without deciding it.
func AdmissionOf(s *state.State, alt *state.Alternative) (Admission, *quota.Error) {
	if !alt.Of.IsResize() {
		a, refused := placeAlternative(s, alt)
		return Admission{State: s, Allocation: a}, refused
	}
	h, refused := PlaceResize(s, alt)
	if refused != nil {
		return Admission{}, refused
	}
	return h.asTx(), nil
}
