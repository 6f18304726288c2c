package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/permit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// expireDue ends or changes what is due, in the order of the instants; at one instant, what is due in ledger time by
// kind and number, then what is due in civil time. Before something is taken away, the queue is retried with what
// became free at an earlier instant, so that several instants in one command do as much as one command for each.
func expireDue(s *state.State, c quota.Expire, m state.Mode) state.Outcome {
	if err := admit.CheckMost(c.Most); err != nil || m == state.DryRun {
		return state.Outcome{Refused: err}
	}
	var out state.Outcome
	freed := quota.Instant(0) // when the first dirty queue became so
	for out.Expired < c.Most {
		next, isDue := admit.NextDue(s)
		if !isDue {
			break
		}
		isClean := s.Queue.Dirty.Len() == 0
		if !isClean && freed < next.At && admit.TakesAway(&next) {
			admit.DrainQueue(s)
			continue
		}
		if next.Kind == state.DueSchedule {
			s.Calendar.Fire(next.Number)
		} else {
			out.Restored = append(out.Restored, fireDeadline(s, next.DueKey)...)
		}
		if isClean {
			freed = next.At
		}
		out.Expired++
	}
	return out
}

// fireDeadline carries out one deadline. It returns the ids of the allocations that are restored by it.
func fireDeadline(s *state.State, k state.DueKey) (restored []string) {
	switch k.Kind {
	case state.DueAllocation:
		a, _ := s.Allocations.Held.Get(k.Number)
		return admit.Expire(s, a)
	case state.DueWaiter:
		admit.DropOverdue(s, s.Queue.ByArrival[k.Number])
	case state.DueItem:
		admit.AdvanceItem(&s.Inventory, k.Number)
	case state.DueHold:
		configure.EndHold(s, s.Forest.OnHold[k.Number])
	case state.DueDrain:
		n := s.Forest.OnHold[k.Number]
		admit.DrainFrom(s, n, n.Hold.DrainAfter)
	case state.DueRequest:
		open := s.Requests.Find(k.Number)
		closed := s.Requests.Close(open, quota.RequestExpired, "", "it was not decided in time")
		s.Journal.Changes = append(s.Journal.Changes, permit.RequestChange(&s.Forest, open, closed))
	case state.DueSchedule: // in the heap of the calendar
	}
	return nil
}
