package oracle

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/quota"
)

// lease is what an allocation has of one.
type lease struct {
	ttl     quota.Span
	expires quota.Instant
	renewed quota.Stamp
	data    []quota.Label
}

func (l *lease) begin(now quota.Stamp) {
	if l.ttl > 0 {
		l.expires = now.At + quota.Instant(l.ttl)
	}
}

// sameRequest compares requests; the data of what has ended are forgotten.
func sameRequest(a *allocation, c quota.Allocate) bool {
	asked := a.whole
	if a.ended != nil {
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
	l := lease{ttl: c.TTL, data: mergeLabels(nil, c.Data)}
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

// endsAt is when an allocation that is held ends by itself; 0 if it does not.
func (a *allocation) endsAt() quota.Instant {
	switch {
	case a.waiter != nil:
		return a.waiter.waitsUntil()
	case a.state == quota.Reserved:
		return a.until
	}
	return a.expires
}

func (o *oracle) renew(c quota.Renew) verdict {
	a, refused := o.findKnown(c.ID)
	switch {
	case a == nil:
		return refused
	case a.ended != nil:
		return refusal(quota.Ended, "id")
	case c.Fence != 0 && c.Fence != a.fence:
		return refusal(quota.FenceMismatch, "fence")
	case a.state == quota.Waiting && (c.TTL != 0 || len(c.Data)+len(c.Items) > 0):
		return refusal(quota.Invalid, "id")
	case a.state == quota.Waiting:
		o.keep(a.waiter)
		return verdict{}
	case a.state == quota.Reserved:
		return refusal(quota.InUse, "id")
	case c.TTL != 0 && a.ttl == 0:
		return refusal(quota.Invalid, "ttl_ms")
	}
	for _, claim := range a.request.Claims {
		if c.TTL > o.mostTTL(claim.Tree) {
			return refusal(quota.Invalid, "ttl_ms")
		}
	}
	changed, refused := o.changeable(c.Items, "items", func(it *item) quota.Kind {
		if it.owner != a {
			return quota.NotFound
		}
		return 0
	})
	if refused.refused != 0 {
		return refused
	}
	if c.TTL != 0 {
		a.ttl = c.TTL
	}
	if a.unclaimed {
		o.collect(a)
	}
	a.begin(o.now)
	a.data = mergeLabels(a.data, c.Data)
	if a.renewed.At < o.now.At {
		a.renewed = o.now
	}
	for i, it := range changed {
		o.change(it, c.Items[i])
	}
	return verdict{fence: a.fence}
}

// mergeLabels is data after a change: a label without a value is removed.
func mergeLabels(data, change []quota.Label) []quota.Label {
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
	slices.SortFunc(list, func(a, b quota.Label) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// addLease adds what only leases and holders of items have.
func (o *oracle) addLease(a *allocation, info *quota.AllocationInfo) {
	info.TTL, info.ExpiresAt = a.ttl, a.expires
	if a.ended == nil || a.state == quota.WasPreempted {
		info.Data = a.data
	}
	for _, it := range o.heldBy(a) {
		c := &info.Claims[it.claim]
		c.Items = append(
			c.Items, quota.HeldItem{
				Resource: it.Resource, Name: it.Name, State: it.state, Data: it.data,
				UpdatedWall: it.lastChange().Wall,
			})
	}
	for i, names := range a.itemsAtEnd {
		for _, name := range names {
			info.Claims[i].Items = append(info.Claims[i].Items,
				quota.HeldItem{Resource: name.Resource, Name: name.Name})
		}
	}
}
