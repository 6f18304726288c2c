package check_test

import (
	"github.com/quorate/quorate/chaos/history"
)

// change adds a call about the allocation x, of fence 1. Without an index it is unanswered.
func (s *script) change(
	from, to int64, kind history.Kind, generation, index uint64, claims []history.Claim,
) *script {
	o := history.Op{Kind: kind, ID: "x", Claims: claims, Generation: generation, Index: index}
	if index == 0 {
		o.Outcome = history.Unknown
	} else {
		o.Records = []history.Record{changedRecord(generation, claims)}
	}
	return s.addOp(from, to, o)
}

func (s *script) resize(from, to int64, generation, index uint64, amount int64) *script {
	return s.change(from, to, history.Resize, generation, index, claimOf("a", amount))
}

func (s *script) transfer(from, to int64, generation, index uint64, amount int64) *script {
	return s.change(from, to, history.Transfer, generation, index, claimOf("b", amount))
}

// split leaves the amount rest of x at a, and makes the part p of fence 7 of another amount at a node.
func (s *script) split(from, to int64, generation, index uint64, rest int64, node string, amount int64) *script {
	s.change(from, to, history.Split, generation, index, claimOf("a", rest))
	o := &s.ops[len(s.ops)-1]
	if o.Parts = []history.Part{{ID: "p", Claims: claimOf(node, amount)}}; index > 0 {
		o.Records = append(o.Records, heldRecord("p", node, amount, 7))
	}
	return s
}

func (s *script) denySplit(
	from, to int64, generation, index uint64, rest int64, node string, amount int64, why ...history.Violation,
) *script {
	s.refuseChange(from, to, generation, index, claimOf("a", rest), history.Denied, why...)
	o := &s.ops[len(s.ops)-1]
	o.Kind, o.Parts = history.Split, []history.Part{{ID: "p", Claims: claimOf(node, amount)}}
	return s
}

func changedRecord(generation uint64, claims []history.Claim) history.Record {
	return history.Record{ID: "x", State: history.Held, Fence: 1, Claims: claims, Generation: generation}
}

func (s *script) denyResize(
	from, to int64, generation, index uint64, amount int64, why ...history.Violation,
) *script {
	return s.refuseChange(from, to, generation, index, claimOf("a", amount), history.Denied, why...)
}

func (s *script) refuseChange(
	from, to int64, generation, index uint64, claims []history.Claim, reason string, why ...history.Violation,
) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Resize, ID: "x", Claims: claims, Generation: generation, Index: index,
		Outcome: history.Refused, Reason: reason, Violations: why,
	})
}

func (s *script) readChanged(from, to int64, generation, index uint64, claims []history.Claim) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadAllocation, ID: "x", Index: index, ServedBy: "n1",
		Records: []history.Record{changedRecord(generation, claims)},
	})
}

func (s *script) readPart(from, to int64, index uint64, amount int64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadAllocation, ID: "p", Index: index, ServedBy: "n1",
		Records: []history.Record{heldRecord("p", "b", amount, 7)},
	})
}

func (s *script) setLimit(from, to int64, index uint64, amount int64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Configure, ID: "c", Index: index, Limits: []history.Limit{limitOf("a", amount)},
	})
}

// asSplit makes a split of the last call.
func (s *script) asSplit() *script {
	o := &s.ops[len(s.ops)-1]
	o.Kind, o.Parts = history.Split, []history.Part{{ID: "p", Claims: claimOf("b", 2)}}
	return s
}

func (s *script) setLimitOf(node string, amount int64) *script {
	for i, l := range s.ops[0].Limits {
		if l.Node == node {
			s.ops[0].Limits[i].Amount = amount
		}
	}
	for i := range s.ops {
		for j, u := range s.ops[i].Usage {
			if u.Node == node {
				s.ops[i].Usage[j].Limit = amount
			}
		}
	}
	return s
}

// readUsageWith reads the usage of a under a limit that was changed.
func (s *script) readUsageWith(from, to int64, index uint64, used, limit int64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadUsage, Index: index, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
		Usage: []history.Usage{{
			Tree: "t", Node: "a", Resource: "units", Used: used, Limit: limit, Over: max(0, used-limit),
		}},
	})
}
