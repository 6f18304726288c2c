package permit

import (
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// AdoptAllocations gives an owner to allocations that have none. Those of the default namespace move to that of the
// owner, so that its repetitions find them; one whose id is taken there, or that others refer to, is left. Nothing else
// of them changes, so it needs no journal entry and unblocks no request.
func (g Guard) AdoptAllocations(c quota.AdoptAllocations, m state.Mode) state.Outcome {
	if err := g.checkAdoption(c); err != nil {
		return state.Outcome{Refused: err}
	}
	var out state.Outcome
	seen := make(map[string]bool, len(c.IDs)) // look-ups only
	for _, id := range c.IDs {
		a := g.allocations.FindByID(id)
		if a == nil || a.Ended != nil || a.Owner != "" || seen[id] {
			continue
		}
		seen[id] = true
		moved := id
		if quota.NamespaceOf(id) == quota.DefaultNamespace {
			moved = quota.QualifiedID(c.Owner, id)
		}
		if moved != id && (g.allocations.FindByID(moved) != nil || !g.canRename(a)) {
			out.Left = append(out.Left, id)
			continue
		}
		out.Adopted++
		if m == state.CarryOut {
			g.setOwner(a, c.Owner, moved)
			g.journal.Changes = append(g.journal.Changes, quota.Change{
				Kind: quota.Changed, Field: "owner of " + id, After: c.Owner,
			})
		}
	}
	out.Repeated = out.Adopted == 0
	return out
}

// canRename is false while others refer to an allocation by its id: those that it made room for as a reservation, or
// has revoked, and the one that it is revoked for. It may be adopted when that is over.
func (g Guard) canRename(a *state.Allocation) bool {
	madeRoom := a.State() == quota.Reserved && len(a.More.Preempted)+len(a.More.Displaced) > 0
	return !madeRoom && a.Lease().RevokedBy == "" && g.queue.RevokedFor[a.ID()] == 0
}

func (g Guard) setOwner(a *state.Allocation, owner, id string) {
	if a.IsWaiting() {
		g.ownWaiter(g.queue.WaiterOf(a), owner, id)
		return
	}
	updated := *a
	updated.Owner = owner
	g.allocations.Rename(&updated, id)
	if resize := updated.WaitingResize(); resize != nil {
		g.ownWaiter(g.queue.WaiterOf(resize), owner, id)
	}
}

func (g Guard) ownWaiter(w *state.Waiter, owner, id string) {
	admit.ReplaceWaiting(g.queue, w, *w.Record.More.Waiting)
	w.Record.Owner = owner // no reader has the new record yet
	g.queue.CountOwner(owner, 1)
	g.queue.Rename(w, id)
}

func (g Guard) checkAdoption(c quota.AdoptAllocations) *quota.Error {
	if n := len(c.Reason); n > quota.MaxReason {
		return quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed", n, quota.MaxReason)
	}
	if n := len(c.IDs); n < 1 || n > quota.MaxAdopted {
		return quota.Errorf(quota.Invalid, "ids", "%d ids are named; 1 to %d are allowed", n, quota.MaxAdopted)
	}
	for i, id := range c.IDs {
		if err := admit.CheckID(id); err != nil {
			err.Field = fmt.Sprintf("ids[%d]", i)
			return err
		}
	}
	if err := g.Env.Book.CheckOwner(c.Owner); err != nil {
		return configure.AccessRefusal(err)
	}
	return nil
}

// UnownedPage has ids in the order of their fences.
type UnownedPage struct {
	IDs []string
	// Next is the fence to continue after; 0 on the last page.
	Next uint64
}
