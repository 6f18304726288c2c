package ledger_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// allocate begins the next claim at a word without =.
func (p *parser) allocate(args []string) quota.Allocate {
	request := quota.Allocate{ID: args[0]}
	if slices.Contains(args, "|") {
		return p.anyOf(args)
	}
	for _, word := range args[1:] {
		key, value, ok := strings.Cut(word, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		last := len(request.Claims) - 1
		pair, isData := strings.CutPrefix(key, "data.")
		switch {
		case isData:
			request.Data = append(request.Data, quota.Label{Key: pair, Value: value})
		case word[0] == '@':
			p.attributeOf(&request, key, value)
		case !ok:
			tree, node := nodeAt(word)
			request.Claims = append(request.Claims, quota.Claim{Tree: tree, Node: node})
		case isLabel:
			request.Labels = append(request.Labels, quota.Label{Key: label, Value: value})
		case last < 0:
			p.fail("where is %q claimed?", word)
		default:
			c := &request.Claims[last]
			if p.pick(c, key, value) || p.amountRange(c, key, value) {
				continue
			}
			c.Amounts = append(c.Amounts, quota.Component{Resource: key, Amount: p.amount(value)})
			slices.SortFunc(c.Amounts, byResource)
		}
	}
	sortLabels(request.Labels)
	sortLabels(request.Data)
	return request
}

// anyOf reads alternatives, which are separated by a bar; what is said of the request belongs to all.
func (p *parser) anyOf(args []string) quota.Allocate {
	var request quota.Allocate
	var lists [][]quota.Claim
	words := []string{args[0]}
	for i, word := range args[1:] {
		if word != "|" {
			words = append(words, word)
		}
		if word == "|" || i == len(args)-2 {
			request = p.allocate(words)
			lists = append(lists, request.Claims)
			words = []string{args[0]}
		}
	}
	request.Claims, request.AnyOf = nil, lists
	return request
}

// amountRange reads LEAST..MOST/STEP. It is false for other words.
func (p *parser) amountRange(c *quota.Claim, resource, value string) bool {
	least, rest, ok := strings.Cut(value, "..")
	if !ok {
		return false
	}
	most, step, _ := strings.Cut(rest, "/")
	c.Amounts = append(c.Amounts, quota.Component{Resource: resource, Amount: p.amount(least)})
	c.Ranges = append(c.Ranges, quota.AmountRange{Resource: resource, Most: p.amount(most), Step: p.amount(step)})
	slices.SortFunc(c.Amounts, byResource)
	slices.SortFunc(c.Ranges, func(a, b quota.AmountRange) int { return cmp.Compare(a.Resource, b.Resource) })
	return true
}

// attributeOf reads what only some requests have; a standing belongs to the last claim.
func (p *parser) attributeOf(r *quota.Allocate, key, value string) {
	if len(r.Claims) == 0 {
		p.fail("where does %s belong?", key)
		return
	}
	c := &r.Claims[len(r.Claims)-1]
	if p.wait(r, key, value) {
		return
	}
	switch key {
	case "@priority":
		c.Priority = int64(p.amount(value))
	case "@type":
		c.Type = int64(p.amount(value))
	case "@unpreemptable":
		c.Unpreemptable = true
	case "@user":
		r.Principal.User = value
	case "@groups":
		r.Principal.Groups = strings.Split(value, ",")
	case "@app":
		r.Principal.Application = value
	case "@reserve":
		r.Mode = quota.Reserve
		r.ReserveFor = p.span(value)
	case "@force":
		r.Mode = quota.Force
	case "@declared":
		r.For = p.span(value)
	case "@ttl":
		r.TTL = p.span(value)
	default:
		p.fail("what is %s?", key)
	}
}
