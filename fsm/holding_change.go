package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// decodeHoldingChange returns nil if it is another command.
func decodeHoldingChange(c *logv1.Command) quota.Command {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_Resize:
		r := c.Resize
		return quota.Resize{
			ID: r.GetId(), Fence: r.GetFence(), Generation: r.GetGeneration(),
			Claims: each(r.GetClaims(), decodeClaimChange), WaitFor: quota.Span(r.GetWaitMs()),
		}
	case *logv1.Command_Transfer:
		t := c.Transfer
		return quota.Transfer{
			ID: t.GetId(), Fence: t.GetFence(), Generation: t.GetGeneration(), Moves: each(t.GetMoves(), decodeClaimMove),
		}
	case *logv1.Command_Split:
		s := c.Split
		return quota.Split{
			ID: s.GetId(), Fence: s.GetFence(), Generation: s.GetGeneration(), Parts: each(s.GetParts(), decodePart),
		}
	}
	return nil
}

func encodeClaimChange(c quota.ClaimChange) *logv1.ClaimChange {
	return &logv1.ClaimChange{Tree: c.Tree, Node: c.Node, Amounts: each(c.Amounts, encodeAmount)}
}

func decodeClaimChange(c *logv1.ClaimChange) quota.ClaimChange {
	return quota.ClaimChange{Tree: c.GetTree(), Node: c.GetNode(), Amounts: each(c.GetAmounts(), decodeAmount)}
}

func encodeClaimMove(m quota.ClaimMove) *logv1.ClaimMove {
	return &logv1.ClaimMove{Tree: m.Tree, From: m.From, To: m.To}
}

func decodeClaimMove(m *logv1.ClaimMove) quota.ClaimMove {
	return quota.ClaimMove{Tree: m.GetTree(), From: m.GetFrom(), To: m.GetTo()}
}

func encodePart(p quota.Part) *logv1.Part {
	return &logv1.Part{Id: p.ID, Claims: each(p.Claims, func(c quota.PartClaim) *logv1.PartClaim {
		return &logv1.PartClaim{Tree: c.Tree, From: c.From, To: c.To, Amounts: each(c.Amounts, encodeAmount)}
	})}
}

func decodePart(p *logv1.Part) quota.Part {
	return quota.Part{ID: p.GetId(), Claims: each(p.GetClaims(), func(c *logv1.PartClaim) quota.PartClaim {
		return quota.PartClaim{
			Tree: c.GetTree(), From: c.GetFrom(), To: c.GetTo(), Amounts: each(c.GetAmounts(), decodeAmount),
		}
	})}
}
