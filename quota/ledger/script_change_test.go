package ledger_test

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

func (p *parser) change(word string, args, body []string) quota.Command {
	id, fence, generation, wait := args[0], uint64(0), uint64(0), quota.Span(0)
	var rest []string
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "@fence":
			fence = uint64(p.amount(value))
		case "@generation":
			generation = uint64(p.amount(value))
		case "@wait":
			wait = p.span(value)
		default:
			rest = append(rest, arg)
		}
	}
	switch word {
	case "resize":
		return quota.Resize{ID: id, Fence: fence, Generation: generation, Claims: p.claimChanges(rest), WaitFor: wait}
	case "transfer":
		c := quota.Transfer{ID: id, Fence: fence, Generation: generation}
		for at := range slices.Chunk(rest, 2) {
			tree, from := nodeAt(at[0])
			c.Moves = append(c.Moves, quota.ClaimMove{Tree: tree, From: from, To: at[1]})
		}
		return c
	}
	c := quota.Split{ID: id, Fence: fence, Generation: generation}
	for _, line := range body {
		words := strings.Fields(line)
		c.Parts = append(c.Parts, quota.Part{ID: words[1], Claims: p.partClaims(words[2:])})
	}
	return c
}

func (p *parser) claimChanges(words []string) []quota.ClaimChange {
	var list []quota.ClaimChange
	for _, word := range words {
		key, value, isAmount := strings.Cut(word, "=")
		if !isAmount {
			tree, node := nodeAt(word)
			list = append(list, quota.ClaimChange{Tree: tree, Node: node})
			continue
		}
		c := &list[len(list)-1]
		c.Amounts = append(c.Amounts, quota.Component{Resource: key, Amount: p.amount(value)})
		slices.SortFunc(c.Amounts, byResource)
	}
	return list
}

func (p *parser) partClaims(words []string) []quota.PartClaim {
	var list []quota.PartClaim
	for len(words) > 0 {
		tree, from := nodeAt(words[0])
		list = append(list, quota.PartClaim{Tree: tree, From: from, To: words[1]})
		c := &list[len(list)-1]
		for words = words[2:]; len(words) > 0 && strings.Contains(words[0], "="); words = words[1:] {
			key, value, _ := strings.Cut(words[0], "=")
			c.Amounts = append(c.Amounts, quota.Component{Resource: key, Amount: p.amount(value)})
		}
		slices.SortFunc(c.Amounts, byResource)
	}
	return list
}
