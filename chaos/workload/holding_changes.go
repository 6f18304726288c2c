package workload

import (
	"context"
	"slices"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type changeSpec struct {
	kind       history.Kind
	id         string
	fence      uint64
	generation uint64
	// claims is everything that the allocation shall hold afterwards.
	claims []history.Claim
	// moves are those of a transfer, and parts those of a split.
	moves []*quoratev1.ClaimMove
	parts []*quoratev1.SplitPart
	// wait is how long a resize may wait, in milliseconds, and poll how long each call waits for it.
	wait, poll int64
}

type changeAnswer interface {
	GetAllocation() *quoratev1.Allocation
	GetWrite() *quoratev1.WriteInfo
}

// changeOne makes a random change. Only a resize has the same result whether an earlier change was made or not.
func (h *holder) changeOne(ctx context.Context, i int) {
	one := &h.held[i]
	at := h.random.IntN(len(one.heldClaims))
	claim := one.heldClaims[at]
	nodes := h.nodes[claim.Tree]
	to := nodes[h.random.IntN(len(nodes))]
	isTaken := slices.ContainsFunc(one.heldClaims, func(c history.Claim) bool {
		return c.Tree == claim.Tree && c.Node == to
	})
	switch dice := h.random.IntN(4); {
	case one.isMoved:
		h.readAllocation(ctx, one.id, h.randomReadMode())
	case dice == 0 && !one.isUncertain && !isTaken:
		h.transferOne(ctx, one, at, to)
	case dice == 1 && !one.isUncertain && claim.Amounts[countedResource] > 1:
		h.splitOne(ctx, one, at, to)
	default:
		h.resizeOne(ctx, one)
	}
}

func (h *holder) transferOne(ctx context.Context, one *holding, at int, to string) {
	w := one.nextChange(history.Transfer)
	moved := one.heldClaims[at]
	w.moves = []*quoratev1.ClaimMove{{Tree: moved.Tree, Node: moved.Node, NewNode: to}}
	moved.Node = to
	w.claims = slices.Clone(one.heldClaims)
	w.claims[at] = moved
	switch o, decided := h.tryChange(ctx, w); {
	case o.Outcome == history.OK:
		one.heldClaims = w.claims
	case !decided:
		one.isMoved = true
	}
}

func (h *holder) splitOne(ctx context.Context, one *holding, at int, to string) {
	w := one.nextChange(history.Split)
	from := one.heldClaims[at]
	taken := from.Amounts[countedResource] / 2
	part := holding{id: h.newPartName(one.id), heldClaims: []history.Claim{claimAt(from.Tree, to, taken)}}
	_, partID := splitName(part.id)
	w.parts = []*quoratev1.SplitPart{{Id: partID, Claims: []*quoratev1.SplitClaim{
		{Tree: from.Tree, Node: from.Node, NewNode: to, Amounts: part.heldClaims[0].Amounts},
	}}}
	w.claims = slices.Clone(one.heldClaims)
	w.claims[at] = claimAt(from.Tree, from.Node, from.Amounts[countedResource]-taken)
	switch o, decided := h.tryChange(ctx, w); {
	case o.Outcome == history.OK:
		one.heldClaims = w.claims
		part.fence = o.Records[1].Fence
		h.held = append(h.held, part)
	case !decided:
		one.isMoved, part.isMoved = true, true // a resize would not have the same result with the part and without it
		h.held = append(h.held, part)
	}
}

// resizeOne changes every claim, so that the result does not depend on earlier changes that were not decided.
func (h *holder) resizeOne(ctx context.Context, one *holding) {
	w := one.nextChange(history.Resize)
	for _, claim := range one.heldClaims {
		w.claims = append(w.claims, claimAt(claim.Tree, claim.Node, 1+h.random.Int64N(5)))
	}
	switch o, decided := h.tryChange(ctx, w); {
	case o.Outcome == history.OK:
		one.heldClaims, one.isUncertain = w.claims, false
	case !decided:
		one.isUncertain = true
	}
}

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
		return o
	})
	return o, o.Outcome == history.OK || !lost
}

func (c *caller) callChange(ctx context.Context, w changeSpec) history.Op {
	s := c.randomServer()
	o := c.beginOp(w.kind, s)
	o.ID, o.Claims, o.Generation = w.id, w.claims, w.generation
	if w.wait > 0 {
		o.Mode = history.Wait
	}
	namespace, _ := splitName(w.id)
	for _, p := range w.parts {
		o.Parts = append(o.Parts, history.Part{ID: joinName(namespace, p.GetId()), Claims: partClaims(p)})
	}
	var answer changeAnswer
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = w.send(ctx, s)
		return err
	})
	if err == nil {
		write := answer.GetWrite()
		o.Index, o.Ledger, o.Repeated = write.GetIndex(), write.GetLedgerTimeMs(), write.GetRepetition()
		o.Records = []history.Record{RecordOf(answer.GetAllocation())}
		if split, isSplit := answer.(*quoratev1.SplitResponse); isSplit {
			for _, p := range split.GetParts() {
				o.Records = append(o.Records, RecordOf(p))
			}
		}
	}
	return c.endOp(o, err)
}

func partClaims(p *quoratev1.SplitPart) []history.Claim {
	var all []history.Claim
	for _, c := range p.GetClaims() {
		all = append(all, history.Claim{Tree: c.GetTree(), Node: c.GetNewNode(), Amounts: c.GetAmounts()})
	}
	return all
}

func (w *changeSpec) send(ctx context.Context, s *server) (changeAnswer, error) {
	namespace, id := splitName(w.id)
	if w.kind == history.Transfer {
		return s.allocations.Transfer(ctx, &quoratev1.TransferRequest{
			Namespace: namespace, Id: id, Fence: w.fence, Generation: w.generation, Moves: w.moves,
		})
	}
	if w.kind == history.Split {
		return s.allocations.Split(ctx, &quoratev1.SplitRequest{
			Namespace: namespace, Id: id, Fence: w.fence, Generation: w.generation, Parts: w.parts,
		})
	}
	request := &quoratev1.ResizeRequest{
		Namespace: namespace, Id: id, Fence: w.fence, Generation: w.generation, WaitMs: w.wait, PollMs: w.poll,
	}
	for _, claim := range w.claims {
		request.Claims = append(request.Claims, &quoratev1.ClaimChange{
			Tree: claim.Tree, Node: claim.Node, Amounts: claim.Amounts,
		})
	}
	return s.allocations.Resize(ctx, request)
}
