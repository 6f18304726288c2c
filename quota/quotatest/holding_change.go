package quotatest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// HoldingChanges are changes of what the allocation of an id holds.
func HoldingChanges(id string) *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command { return holdingChange(t, id) })
}

func holdingChange(t *rapid.T, id string) quota.Command {
	generation := pick(t, []uint64{0, 0, 1, 2, 3}, "generation")
	switch Die(t, 4, "change") {
	case 0:
		return quota.Transfer{ID: id, Generation: generation, Moves: claimMoves(t)}
	case 1:
		c := quota.Split{ID: id, Generation: generation}
		for range 1 + Die(t, 2, "parts") {
			c.Parts = append(c.Parts, quota.Part{
				ID: fmt.Sprintf("b%d", Die(t, borrowers, "part")), Claims: partClaims(t),
			})
		}
		return c
	}
	c := quota.Resize{ID: id, Generation: generation}
	if Die(t, 2, "waits") == 0 {
		c.WaitFor = quota.Span(1 + Die(t, 40, "wait"))
	}
	for range 1 + Die(t, 2, "claims") {
		c.Claims = append(c.Claims, quota.ClaimChange{
			Tree: TreeNames[Die(t, 2, "tree")], Node: path(t), Amounts: amounts(t, 7),
		})
	}
	return c
}

func claimMoves(t *rapid.T) []quota.ClaimMove {
	var list []quota.ClaimMove
	for range 1 + Die(t, 2, "moves") {
		list = append(list, quota.ClaimMove{Tree: TreeNames[Die(t, 2, "tree")], From: path(t), To: path(t)})
	}
	return list
}

func partClaims(t *rapid.T) []quota.PartClaim {
	var list []quota.PartClaim
	for range 1 + Die(t, 2, "claims") {
		list = append(list, quota.PartClaim{
			Tree: TreeNames[Die(t, 2, "tree")], From: path(t), To: path(t), Amounts: amounts(t, 3),
		})
	}
	return list
}

func amounts(t *rapid.T, most int) quota.Vector {
	var v quota.Vector
	for _, name := range resources[:2] {
		if Die(t, 2, "resource") == 0 {
			v = append(v, quota.Component{Resource: name, Amount: quota.Amount(Die(t, most, "amount"))})
		}
	}
	return v
}
