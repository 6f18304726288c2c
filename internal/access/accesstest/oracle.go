// Package accesstest helps tests of rights: a slow, obvious oracle of decisions, and random bindings and callers.
package accesstest

import (
	"math"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
)

// Tree is nodes with bindings, beside the bindings on the cluster. It answers by looking at every binding.
type Tree struct {
	// Parents has the parent of each node; that of the root, node 0, is -1.
	Parents []int
	// Bindings are those of each node, Cluster those on the cluster.
	Bindings [][]access.Binding
	Cluster  []access.Binding
	// Verbs has the verbs of each role, built-in or custom.
	Verbs map[string]access.Verbs
}

// Rights returns what a caller with a ceiling on its credential may do at a node; node -1 is the cluster.
func (t *Tree) Rights(c access.Caller, ceiling access.Verbs, node int, wall int64) access.Rights {
	r := access.Rights{MaxPriority: math.MinInt64}
	if c.Kind == access.System {
		return access.Rights{
			Verbs: access.AllVerbs, MaxPriority: math.MaxInt64, Unpreemptable: true,
			HoldAs: access.Holders{Any: true},
		}
	}
	var bound []access.Binding
	for ; node >= 0; node = t.Parents[node] {
		for _, b := range t.Bindings[node] {
			if b.Until == 0 || b.Until > wall {
				if applies(b, c) {
					r.Verbs |= t.Verbs[b.Role] & access.NodeVerbs
					bound = append(bound, b)
				}
			}
		}
	}
	for _, b := range t.Cluster {
		if (b.Until == 0 || b.Until > wall) && applies(b, c) {
			r.Verbs |= t.Verbs[b.Role]
			bound = append(bound, b)
		}
	}
	if r.Verbs &= ceiling; !r.Verbs.Has(access.Hold) {
		return r
	}
	for _, b := range bound {
		t.raise(&r, b)
	}
	slices.Sort(r.HoldAs.Names)
	r.HoldAs.Names = slices.Compact(r.HoldAs.Names)
	if r.HoldAs.Any {
		r.HoldAs.Names = nil
	}
	return r
}

func (t *Tree) raise(r *access.Rights, b access.Binding) {
	root := b.Role == access.RoleRoot
	if t.Verbs[b.Role].Has(access.Hold) {
		if r.MaxPriority = max(r.MaxPriority, b.MaxPriority); root {
			r.MaxPriority = math.MaxInt64
		}
		r.Unpreemptable = r.Unpreemptable || b.Unpreemptable || root
	}
	if t.Verbs[b.Role].Has(access.HoldAs) && r.Verbs.Has(access.HoldAs) {
		r.HoldAs.Any = r.HoldAs.Any || b.HoldAs.Any || root
		r.HoldAs.Names = append(r.HoldAs.Names, b.HoldAs.Names...)
	}
}

func applies(b access.Binding, c access.Caller) bool {
	for _, s := range b.To {
		switch text := s.String(); {
		case text == "anonymous" && c.Kind == access.Anonymous,
			text == "everyone" && (c.Kind == access.AccountCaller || c.Kind == access.External),
			text == "user "+c.User,
			strings.HasPrefix(text, "account ") && c.User == "account/"+s.Name:
			return true
		}
		if s.Kind == access.Group && slices.Contains(c.Groups, s.Name) {
			return true
		}
	}
	return false
}
