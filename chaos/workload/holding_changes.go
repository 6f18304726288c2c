package workload

import (
	"context"
	"strings"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// changeSpec is a change of what an allocation holds that can be tried more than once.
type changeSpec struct {
	kind       history.Kind
	id         string
	fence      uint64
	generation uint64
	// claims is everything that the allocation shall hold afterwards.
	claims []history.Claim
}

// changeAnswer is what the answers of all changes have in common.
type changeAnswer interface {
	GetAllocation() *quoratev1.Allocation
	GetIndex() uint64
	GetLedgerTimeMs() int64
	GetRepeated() bool
}

// resizeOne gives every claim of an allocation another amount, so that the result does not depend on earlier changes
// that were not decided.
func (h *holder) resizeOne(ctx context.Context, one *holding) {
	w := one.nextChange(history.Resize)
	for _, claim := range one.has {
		w.claims = append(w.claims, claimAt(claim.Tree, claim.Node, 1+h.random.Int64N(5)))
	}
	switch o, decided := h.tryChange(ctx, w); {
	case o.Outcome == history.OK:
		one.has, one.isUncertain = w.claims, false
	case !decided:
		one.isUncertain = true
	}
}

// nextChange is a change with the next generation.
func (one *holding) nextChange(kind history.Kind) changeSpec {
	one.generation++
	return changeSpec{kind: kind, id: one.id, fence: one.fence, generation: one.generation}
}

// tryChange repeats a change while its answers are lost. A change that is refused after a lost answer is not decided:
// the earlier attempt may still arrive.
func (h *holder) tryChange(ctx context.Context, w changeSpec) (o history.Op, decided bool) {
	lost := false
	o = h.retryUntilDecided(ctx, func() history.Op {
		o := h.callChange(ctx, w)
		lost = lost || o.Outcome == history.Unknown
		if isNotUpgraded(o) {
			o.Outcome = history.Refused // it would be repeated in vain until all nodes are upgraded
		}
		return o
	})
	return o, o.Outcome == history.OK || !lost
}

// isNotUpgraded reports whether the cluster does not know such calls yet.
func isNotUpgraded(o history.Op) bool {
	return o.Outcome == history.Failed &&
		(strings.HasPrefix(o.Reason, "failed_precondition") || strings.HasPrefix(o.Reason, "unimplemented"))
}

// callChange makes one attempt.
func (c *caller) callChange(ctx context.Context, w changeSpec) history.Op {
	s := c.randomServer()
	o := c.beginOp(w.kind, s)
	o.ID, o.Claims, o.Generation = w.id, w.claims, w.generation
	var answer changeAnswer
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = w.send(ctx, s)
		return err
	})
	if err == nil {
		o.Index, o.Ledger, o.Repeated = answer.GetIndex(), answer.GetLedgerTimeMs(), answer.GetRepeated()
		o.Records = []history.Record{RecordOf(answer.GetAllocation())}
	}
	return c.endOp(o, err)
}

// send makes the call.
func (w *changeSpec) send(ctx context.Context, s *server) (changeAnswer, error) {
	request := &quoratev1.ResizeRequest{Id: w.id, Fence: w.fence, Generation: w.generation}
	for _, claim := range w.claims {
		request.Claims = append(request.Claims, &quoratev1.ClaimChange{
			Tree: claim.Tree, Node: claim.Node, Amounts: claim.Amounts,
		})
	}
	return s.allocations.Resize(ctx, request)
}
