package ledger_test

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/quota"
)

// lease is what a grant has of one.
type lease struct {
	ttl     quota.Span
	expires quota.Instant
	touched quota.Stamp
	data    []quota.Label
}

func (l *lease) begin(now quota.Stamp) {
	if l.ttl > 0 {
		l.expires = now.At + quota.Instant(l.ttl)
	}
}

// sameRequest: the data of what has ended are forgotten.
func sameRequest(g *grant, c quota.Allocate) bool {
	asked := g.asked
	if g.ended != nil {
		asked.Data, c.Data = nil, nil
	}
	return cmp.Equal(asked, c, cmpopts.EquateEmpty())
}

func (o *oracle) mostTTL(tree string) quota.Span {
	if most := o.trees[tree].Leases.Max; most != 0 {
		return most
	}
	return quota.MaxTTL
}

// checkLease refuses a TTL that is too long for a tree.
func (o *oracle) checkLease(c quota.Allocate) verdict {
	for _, claim := range c.Claims {
		if c.TTL > o.mostTTL(claim.Tree) {
			return refusal(quota.Invalid, "ttl_ms")
		}
	}
	return verdict{}
}

// leaseOf is the lease that a request asks for: its own TTL, or else the shortest of its items, or else of its trees.
func (o *oracle) leaseOf(c quota.Allocate) lease {
	l := lease{ttl: c.TTL, data: laid(nil, c.Data)}
	var ofItems, ofTrees []quota.Span
	most := quota.MaxTTL
	for _, claim := range c.Claims {
		most = min(most, o.mostTTL(claim.Tree))
		if d := o.trees[claim.Tree].Leases.Default; d > 0 {
			ofTrees = append(ofTrees, d)
		}
		for _, p := range claim.Picks {
			if d := itemized(o.trees[claim.Tree], p.Resource).TTL; d > 0 {
				ofItems = append(ofItems, d)
			}
		}
	}
	switch {
	case c.TTL > 0:
	case len(ofItems) > 0:
		l.ttl = min(slices.Min(ofItems), most)
	case len(ofTrees) > 0:
		l.ttl = min(slices.Min(ofTrees), most)
	}
	l.begin(o.now)
	return l
}

// endsAt is when a grant that is held ends by itself; 0 if it does not.
func (g *grant) endsAt() quota.Instant {
	if g.state == quota.Reserved {
		return g.until
	}
	return g.expires
}

func (o *oracle) renew(c quota.Renew) verdict {
	g, refused := o.known(c.ID)
	switch {
	case g == nil:
		return refused
	case g.ended != nil:
		return refusal(quota.Ended, "id")
	case c.Fence != 0 && c.Fence != g.fence:
		return refusal(quota.FenceMismatch, "fence")
	case g.state == quota.Reserved:
		return refusal(quota.InUse, "id")
	case c.TTL != 0 && g.ttl == 0:
		return refusal(quota.Invalid, "ttl_ms")
	}
	for _, claim := range g.request.Claims {
		if c.TTL > o.mostTTL(claim.Tree) {
			return refusal(quota.Invalid, "ttl_ms")
		}
	}
	things, refused := o.changeable(c.Items, "items", func(it *thing) quota.Kind {
		if it.owner != g {
			return quota.NotFound
		}
		return 0
	})
	if refused.refused != 0 {
		return refused
	}
	if c.TTL != 0 {
		g.ttl = c.TTL
	}
	g.begin(o.now)
	g.data = laid(g.data, c.Data)
	if g.touched.At < o.now.At {
		g.touched = o.now
	}
	for i, it := range things {
		o.change(it, c.Items[i])
	}
	return verdict{fence: g.fence}
}

// laid is data with a change laid over them.
func laid(data, change []quota.Label) []quota.Label {
	all := map[string]string{}
	for _, pair := range slices.Concat(data, change) {
		all[pair.Key] = pair.Value
	}
	var list []quota.Label
	for key, value := range all {
		if value != "" {
			list = append(list, quota.Label{Key: key, Value: value})
		}
	}
	sortLabels(list)
	return list
}

// addLease says what only leases and holders of items have.
func (o *oracle) addLease(g *grant, info *quota.AllocationInfo) {
	info.TTL, info.ExpiresAt = g.ttl, g.expires
	if g.ended == nil || g.state == quota.WasPreempted {
		info.Data = g.data
	}
	for _, it := range o.heldBy(g) {
		c := &info.Claims[it.claim]
		c.Items = append(c.Items, quota.HeldItem{Resource: it.Resource, Name: it.Name, State: it.state, Data: it.data, UpdatedWall: it.touched().Wall})
	}
	for i, names := range g.lost {
		for _, name := range names {
			info.Claims[i].Items = append(info.Claims[i].Items, quota.HeldItem{Resource: name.Resource, Name: name.Name})
		}
	}
}
