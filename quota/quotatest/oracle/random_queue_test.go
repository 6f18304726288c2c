package oracle

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestQueueAgainstOracle does the same with requests and resizes that wait: who is granted, in which order and under
// which fence, and who waits where and why.
func TestQueueAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) { agreeOnQueue(t, 8, false) })
}

// TestHoldingChangesAgainstOracle does the same with mostly changes of what is held, by users some of which are
// limited. Then nothing waits.
func TestHoldingChangesAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) { agreeOnQueue(t, 40, quotatest.Die(t, 2, "users") == 0) })
}

// FuzzQueue does the same with commands that a fuzzer finds.
func FuzzQueue(f *testing.F) { quotatest.Fuzz(f, func(t *rapid.T) { agreeOnQueue(t, 20, false) }) }

// agreeOnQueue draws changes of what is held with a weight, beside 40 for everything else.
func agreeOnQueue(t *rapid.T, changes int, users bool) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 6
	p := newPair(bounds)
	p.now.At = 1 // since 0 is never
	for _, name := range []string{"t", "u"} {
		p.apply(t, withUsers(t, quotatest.QueueTree(name).Draw(t, "first trees"), users))
	}
	p.run(t, 60, func() quota.Command {
		if quotatest.Die(t, 12, "long") == 0 { // until callers must have come back
			p.now.At += quota.Instant(quota.MinKeep)
		}
		if quotatest.Die(t, 40+changes, "change") >= 40 {
			return withUsers(t, p.changeOfHeld(t), users)
		}
		return withUsers(t, quotatest.QueueCommands().Draw(t, "command"), users)
	})
}

// withUsers limits users in a tree, and makes a request or a change that of a user, which does not wait.
func withUsers(t *rapid.T, c quota.Command, users bool) quota.Command {
	if !users {
		return c
	}
	switch c := c.(type) {
	case quota.ApplyTrees:
		for i := range c.Trees[0].Nodes {
			if quotatest.Die(t, 3, "limited users") == 0 {
				c.Trees[0].Nodes[i].Principals = []quota.PrincipalLimit{{
					Users:  []string{"ann", "bob"},
					Limits: quota.Vector{{Resource: "cpu", Amount: quota.Amount(quotatest.Die(t, 8, "user limit"))}},
				}}
			}
		}
	case quota.Allocate:
		c.Principal.User = []string{"", "ann", "bob"}[quotatest.Die(t, 3, "user")]
		if c.Mode == quota.Wait {
			c.Mode, c.WaitFor, c.Keep = quota.Hold, 0, 0
		}
		return c
	case quota.Resize:
		c.WaitFor = 0
		return c
	}
	return c
}

// changeOfHeld changes what an allocation holds, which now and then holds nothing any more.
func (p *pair) changeOfHeld(t *rapid.T) quota.Command {
	held := p.oracle.held()
	if len(held) == 0 {
		return quotatest.QueueCommands().Draw(t, "command")
	}
	a := held[quotatest.Die(t, len(held), "held")]
	claim := a.request.Claims[quotatest.Die(t, len(a.request.Claims), "claim")]
	generation := []uint64{0, a.generation + 1}[quotatest.Die(t, 2, "generation")]
	switch quotatest.Die(t, 6, "kind") {
	case 0, 1:
		c := quota.Transfer{ID: a.request.ID, Generation: generation}
		for i, from := range a.request.Claims {
			if i == 0 || quotatest.Die(t, 2, "moves too") == 0 {
				c.Moves = append(c.Moves, quota.ClaimMove{
					Tree: from.Tree, From: from.Node, To: quotatest.QueueNode(t),
				})
			}
		}
		return c
	case 2:
		part := quota.PartClaim{Tree: claim.Tree, From: claim.Node, To: quotatest.QueueNode(t)}
		for i, c := range claim.Amounts {
			if i == 0 || quotatest.Die(t, 2, "takes") == 0 {
				c.Amount = quota.Amount(1 + quotatest.Die(t, max(1, int(c.Amount)), "amount"))
				part.Amounts = append(part.Amounts, c)
			}
		}
		id := fmt.Sprint("j", quotatest.Die(t, 14, "part"))
		return quota.Split{
			ID: a.request.ID, Generation: generation, Parts: []quota.Part{{ID: id, Claims: []quota.PartClaim{part}}},
		}
	}
	c := quotatest.QueueResizes(a.request.ID, a.request.Claims).Draw(t, "resize")
	return c
}
