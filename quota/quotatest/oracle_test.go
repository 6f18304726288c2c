package quotatest_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/quota"
)

// oracle is the slow, obviously right ledger: it keeps what was asked and granted, and answers every question by
// walking over all of it. oracle_config_test.go has its half of the configuration.
type oracle struct {
	bounds quota.Bounds
	now    quota.Stamp
	configuration
	lastID   int
	revision uint64
	history  []quota.Revision
	past     map[uint64]configuration // by revision
	reach    uint64                   // the oldest revision that the history reaches back to, as the ledger says
	grants   []*grant                 // all that ever were, in the order of their fences
	ends     []*grant                 // in the order of their ends
}

// grant is one allocation, held or ended.
type grant struct {
	request quota.Allocate
	placed  []string // path of each claim
	fence   uint64
	granted quota.Stamp
	forced  bool
	ended   *quota.Stamp
}

// verdict is what a command should do.
type verdict struct {
	refused  quota.Kind // 0 if it is not
	field    string     // of a refused Allocate or Release
	breaches []string
	repeated bool

	decided    bool
	violations []quota.Violation
	fence      uint64 // 0 if nothing was granted

	configured bool
	revision   uint64
	changes    []quota.Change
	over       []quota.Overuse
}

func newOracle(b quota.Bounds) *oracle {
	nothing := configuration{trees: map[string]quota.TreeSpec{}, ids: map[string]map[string]int{}}
	return &oracle{bounds: b, configuration: nothing, past: map[uint64]configuration{0: nothing}}
}

func refusal(kind quota.Kind, field string) verdict { return verdict{refused: kind, field: field} }

func (o *oracle) apply(s quota.Stamp, c quota.Command) verdict {
	o.now = quota.Stamp{At: max(o.now.At, s.At), Wall: s.Wall}
	switch c := c.(type) {
	case quota.Allocate:
		return o.allocate(c)
	case quota.Release:
		return o.release(c)
	case quota.ApplyTrees:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.applyTrees(c) })
	case quota.SetLimits:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.setLimits(c) })
	case quota.DeleteTree:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.deleteTree(c) })
	case quota.MoveNode:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.moveNode(c) })
	case quota.SetMaintenance:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.setMaintenance(c) })
	case quota.RollBack:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.rollBack(c) })
	}
	panic("a command outside the closed list")
}

// find answers what an id stands for: the youngest grant of that id, if it is held or its tombstone stands.
func (o *oracle) find(id string) *grant {
	for _, g := range slices.Backward(o.grants) {
		if g.request.ID == id {
			if g.ended == nil || o.remembered(g) {
				return g
			}
			return nil
		}
	}
	return nil
}

// remembered: among the last that ended, and not too long ago.
func (o *oracle) remembered(g *grant) bool {
	last := o.ends[max(0, len(o.ends)-o.bounds.Ended):]
	return slices.Contains(last, g) && o.now.At-g.ended.At < quota.Instant(o.bounds.TombstoneSpan)
}

func (o *oracle) held() []*grant {
	var held []*grant
	for _, g := range o.grants {
		if g.ended == nil {
			held = append(held, g)
		}
	}
	return held
}

func (o *oracle) allocate(c quota.Allocate) verdict {
	if g := o.find(c.ID); g != nil {
		switch {
		case !gocmp.Equal(g.request, c, cmpopts.EquateEmpty()):
			return refusal(quota.IDTaken, "id")
		case g.ended != nil:
			return refusal(quota.Ended, "id")
		}
		return verdict{decided: true, repeated: true, fence: g.fence}
	}
	placed, refused := o.place(c)
	if refused.refused != 0 {
		return refused
	}
	violations := o.violations(c.Claims, placed, false)
	violations = append(violations, o.violations(c.Claims, placed, true)...)
	if len(violations) > 0 {
		return verdict{decided: true, violations: violations}
	}
	if len(o.held()) >= o.bounds.Held {
		return refusal(quota.Full, "")
	}
	g := &grant{request: c, placed: placed, fence: uint64(len(o.grants) + 1), granted: o.now}
	for _, claim := range c.Claims {
		g.forced = g.forced || o.trees[claim.Tree].Maintenance
	}
	o.grants = append(o.grants, g)
	return verdict{decided: true, fence: g.fence}
}

func (o *oracle) release(c quota.Release) verdict {
	if !idPattern.MatchString(c.ID) {
		return refusal(quota.Invalid, "id")
	}
	g := o.find(c.ID)
	switch {
	case g == nil:
		return refusal(quota.NotFound, "id")
	case g.ended != nil:
		return verdict{repeated: true, fence: g.fence}
	}
	at := o.now
	g.ended = &at
	o.ends = append(o.ends, g)
	return verdict{fence: g.fence}
}

var (
	idPattern       = regexp.MustCompile(`^[!-~]{1,128}$`)
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$`)
	resourcePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)
)

// place finds where each claim counts, or the first thing that is wrong with the request.
func (o *oracle) place(c quota.Allocate) ([]string, verdict) {
	switch {
	case !idPattern.MatchString(c.ID):
		return nil, refusal(quota.Invalid, "id")
	case len(c.Claims) == 0 || len(c.Claims) > o.bounds.Claims:
		return nil, refusal(quota.Invalid, "claims")
	case !o.goodLabels(c.Labels):
		return nil, refusal(quota.Invalid, "labels")
	}
	var placed []string
	for i, claim := range c.Claims {
		field := fmt.Sprintf("claims[%d].", i)
		spec, known := o.trees[claim.Tree]
		if !known {
			return nil, refusal(quota.NotFound, field+"tree")
		}
		at, kind := o.placeAt(spec, claim.Node)
		if kind != 0 {
			return nil, refusal(kind, field+"node")
		}
		if kind, of := wrongAmount(spec, claim.Amounts); kind != 0 {
			return nil, refusal(kind, field+"amounts"+of)
		}
		for _, before := range c.Claims[:i] {
			if before.Tree == claim.Tree && before.Node == claim.Node {
				return nil, refusal(quota.Invalid, field+"node")
			}
		}
		placed = append(placed, at)
	}
	forest := ""
	for i, claim := range c.Claims {
		f := o.trees[claim.Tree].Forest
		if forest != "" && f != "" && f != forest {
			return nil, refusal(quota.Invalid, fmt.Sprintf("claims[%d].tree", i))
		}
		forest = cmp.Or(forest, f)
	}
	return placed, o.roomForMade(c, placed)
}

// roomForMade refuses a request whose nodes on demand would be too many.
func (o *oracle) roomForMade(c quota.Allocate, placed []string) verdict {
	with := *o
	with.grants = append(slices.Clone(o.grants), &grant{request: c, placed: placed})
	nodes, full := 0, false
	for tree := range o.trees {
		n := len(with.nodesOf(tree))
		nodes += n
		full = full || n > o.bounds.NodesPerTree && n > len(o.nodesOf(tree))
	}
	if full || nodes > o.bounds.Nodes {
		return refusal(quota.Full, "claims")
	}
	return verdict{}
}

func (o *oracle) placeAt(spec quota.TreeSpec, path string) (string, quota.Kind) {
	there := o.nodesOf(spec.Name)
	if !slices.Contains(there, path) && !o.goodPath(path) {
		return "", quota.Invalid
	}
	for at := path; ; at = above(at) {
		if !slices.Contains(there, at) {
			continue
		}
		switch p := policyOf(spec, at); {
		case at == path || p == "open":
			return at, 0
		case p == "project":
			return path, 0
		}
		return "", quota.NotFound
	}
}

// above is the path without its last name.
func above(path string) string {
	names := strings.Split(path, "/")
	return strings.Join(names[:len(names)-1], "/")
}

func nodeOf(spec quota.TreeSpec, path string) *quota.NodeSpec {
	for i := range spec.Nodes {
		if spec.Nodes[i].Path == path {
			return &spec.Nodes[i]
		}
	}
	return nil
}

func wrongAmount(spec quota.TreeSpec, amounts quota.Vector) (quota.Kind, string) {
	if len(amounts) == 0 {
		return quota.Invalid, ""
	}
	for i, a := range amounts {
		of := "[" + a.Resource + "]"
		switch {
		case !registers(spec, a.Resource):
			return quota.NotFound, of
		case a.Amount < 0 || a.Amount > quota.MaxAmount || i > 0 && amounts[i-1].Resource >= a.Resource:
			return quota.Invalid, of
		}
	}
	return 0, ""
}

func registers(spec quota.TreeSpec, name string) bool {
	return slices.ContainsFunc(spec.Resources, func(r quota.Resource) bool { return r.Name == name })
}

// violations asks every node on the way of every claim about every resource that the request wants in its subtree.
// Trees in maintenance are asked apart: there only what can be counted is a limit.
func (o *oracle) violations(all []quota.Claim, places []string, maintenance bool) []quota.Violation {
	var list []quota.Violation
	var claims []quota.Claim
	var placed []string
	for i, c := range all {
		if o.trees[c.Tree].Maintenance == maintenance {
			claims, placed = append(claims, c), append(placed, places[i])
		}
	}
	asked := map[string]bool{}
	for i, c := range claims {
		for _, path := range upwards(placed[i]) {
			if asked[c.Tree+":"+path] || maintenance && path != "" {
				continue // the root holds what everything below it holds
			}
			asked[c.Tree+":"+path] = true
			for _, r := range o.trees[c.Tree].Resources {
				want, wanted := requested(claims, placed, c.Tree, path, r.Name)
				used, limit := o.used(c.Tree, path, r.Name), o.ceiling(c.Tree, path, r.Name)
				if maintenance {
					limit = quota.MaxAmount
				}
				if sum := new(big.Int).Add(used, want); wanted && sum.Cmp(big.NewInt(int64(limit))) > 0 {
					list = append(list, quota.Violation{
						Tree: c.Tree, Node: path, Resource: r.Name, Limit: limit, Used: quota.Amount(used.Int64()), Requested: saturated(want),
					})
				}
			}
		}
	}
	return list
}

// saturated is the number, or the largest there is.
func saturated(n *big.Int) quota.Amount {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return quota.Amount(n.Int64())
}

// upwards is the path and all above it, up to the root.
func upwards(path string) []string {
	list := []string{path}
	for path != "" {
		path = above(path)
		list = append(list, path)
	}
	return list
}

func below(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top+"/")
}

// requested is what claims want of a resource in the subtree at a path, and whether they name it there at all.
func requested(claims []quota.Claim, placed []string, tree, path, resource string) (*big.Int, bool) {
	sum, named := new(big.Int), false
	for i, c := range claims {
		for _, a := range c.Amounts {
			if c.Tree == tree && below(placed[i], path) && a.Resource == resource {
				sum.Add(sum, big.NewInt(int64(a.Amount)))
				named = true
			}
		}
	}
	return sum, named
}

// used is what is held of a resource in the subtree at a path.
func (o *oracle) used(tree, path, resource string) *big.Int {
	sum := new(big.Int)
	for _, g := range o.held() {
		more, _ := requested(g.request.Claims, g.placed, tree, path, resource)
		sum.Add(sum, more)
	}
	return sum
}

// own is what is held at the node itself.
func (o *oracle) own(tree, path, resource string) quota.Amount {
	sum := quota.Amount(0)
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			for _, a := range c.Amounts {
				if c.Tree == tree && g.placed[i] == path && a.Resource == resource {
					sum += a.Amount
				}
			}
		}
	}
	return sum
}

// ceiling is the limit in force as a number.
func (o *oracle) ceiling(tree, path, resource string) quota.Amount {
	if l := effective(o.trees[tree], path, resource); l.Kind == quota.Limited {
		return l.Amount
	}
	return quota.MaxAmount
}
