package ledger_test

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// oracle is the slow, obviously right ledger: it keeps what was asked and granted, and answers every question by
// walking over all of it. oracle_config_test.go has its half of the configuration.
type oracle struct {
	bounds   quota.Bounds
	now      quota.Stamp
	trees    map[string]quota.TreeSpec // nodes in walk order
	revision uint64
	history  []quota.Revision
	grants   []*grant // all that ever were, in the order of their fences
	ends     []*grant // in the order of their ends
	seat     uint64
	gone     []claimOf // not counted while a request is tried
	events   []quota.Event
	items    []*thing // in no order
	turn     int
	numbers  map[string]int // last given to an item on demand, by tree and resource
	// versions of trees change with what is held there, see oracle_undo_test.go.
	versions    map[string]int
	lastVersion int
}

// grant is one allocation, held or ended.
type grant struct {
	request quota.Allocate
	homes   []string // path of the node that each claim belongs to
	placed  []string // path of the node where it is counted
	seats   []uint64 // its place in the order of arrival there; 0 without borrowing
	fence   uint64
	granted quota.Stamp
	ended   *quota.Stamp
	// preempted are those that it has ended, by is who ended it.
	preempted []quota.Preempted
	by        string
	state     quota.State
	until     quota.Instant // of a reservation; 0 once it is confirmed
	lease
	// asked is the request as it came; in the other one, items count as amounts, as many as are held.
	asked quota.Allocate
	// lost are the items that it had when it ended, by claim.
	lost [][]quota.ItemName
	undo *undoing // of a reservation
}

// verdict is what a command should do.
type verdict struct {
	refused  quota.Kind // 0 if it is not
	field    string     // of a refused Allocate or Release
	breaches []string
	repeated bool

	decided    bool
	violations []quota.Violation
	preempted  []quota.Preempted
	fence      uint64 // 0 if nothing was granted

	expired int
	items   []string

	configured bool
	revision   uint64
	changes    []quota.Change
	over       []quota.Overuse
}

func newOracle(b quota.Bounds) *oracle {
	return &oracle{bounds: b, trees: map[string]quota.TreeSpec{}, numbers: map[string]int{}, versions: map[string]int{}}
}

func refusal(kind quota.Kind, field string) verdict { return verdict{refused: kind, field: field} }

func (o *oracle) apply(s quota.Stamp, c quota.Command) verdict {
	o.now = quota.Stamp{At: max(o.now.At, s.At), Wall: s.Wall}
	switch c := c.(type) {
	case quota.Allocate:
		return o.allocate(c)
	case quota.Release:
		return o.release(c)
	case quota.Renew:
		return o.renew(c)
	case quota.UpdateItems:
		return o.updateItems(c)
	case quota.ResetItems:
		return o.resetItems(c)
	case quota.Confirm:
		return o.confirm(c)
	case quota.Cancel:
		return o.cancel(c)
	case quota.Expire:
		return o.expire(c)
	case quota.ApplyTrees:
		var named []string
		for _, spec := range c.Trees {
			named = append(named, spec.Name)
		}
		return o.configure(c.Meta, func() (verdict, map[string]quota.TreeSpec) { return o.applyTrees(c) }, named...)
	case quota.SetLimits:
		return o.configure(c.Meta, func() (verdict, map[string]quota.TreeSpec) { return o.setLimits(c) })
	case quota.DeleteTree:
		return o.configure(c.Meta, func() (verdict, map[string]quota.TreeSpec) { return o.deleteTree(c) })
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
		case !sameRequest(g, c):
			return refusal(quota.IDTaken, "id")
		case g.ended != nil:
			return refusal(quota.Ended, "id")
		}
		return verdict{decided: true, repeated: true, fence: g.fence, preempted: g.preempted}
	}
	asked := c
	homes, refused := o.place(c)
	if refused.refused != 0 {
		return refused
	}
	if refused = o.checkSoft(c, homes); refused.refused != 0 {
		return refused
	}
	if refused = namedOnce(c); refused.refused != 0 {
		return refused
	}
	if refused = o.checkLease(c); refused.refused != 0 {
		return refused
	}
	c = counted(c)
	g := &grant{
		request: c, homes: homes, placed: slices.Clone(homes), seats: make([]uint64, len(homes)),
		fence: uint64(len(o.grants) + 1), granted: o.now, asked: asked, lease: o.leaseOf(asked),
	}
	before := o.save()
	violations, t := o.admit(g)
	if len(violations) > 0 {
		o.makeWanted(asked, violations)
		asked.Data = nil
		o.note(quota.Event{Kind: quota.EventDenied, ID: c.ID, Request: &asked, Decision: &quota.Decision{Violations: violations}})
		return verdict{decided: true, violations: violations}
	}
	if len(o.held())-len(t.victims) >= o.bounds.Held {
		o.restore(before)
		return refusal(quota.Full, "")
	}
	if c.Mode == quota.Reserve {
		g.state, g.until, g.expires = quota.Reserved, o.now.At+quota.Instant(c.ReserveFor), 0
	}
	o.hold(g, t)
	return verdict{decided: true, fence: g.fence, preempted: g.preempted}
}

// hold makes a grant held and ends those that gave way.
func (o *oracle) hold(g *grant, t *softTrial) {
	o.gone = nil
	items := o.copiesOfItems()
	for i, c := range g.request.Claims {
		if g.seats[i] == 0 && o.borrows(c.Tree, g.placed[i]) {
			o.put(claimOf{g, i}, g.placed[i])
		}
	}
	for _, v := range t.victims {
		at := o.now
		v.ended, v.by, v.state = &at, g.request.ID, quota.WasPreempted
		o.note(quota.Event{Kind: quota.EventPreempted, ID: v.request.ID, By: g.request.ID})
		o.ends = append(o.ends, v)
		first := slices.IndexFunc(t.out, func(c claimOf) bool { return c.grant == v })
		g.preempted = append(g.preempted, quota.Preempted{ID: v.request.ID, Tree: t.out[first].claim().Tree, Node: t.where[first]})
	}
	for _, v := range t.victims {
		o.giveAll(v, quota.WasPreempted)
	}
	o.grants = append(o.grants, g)
	o.take(g)
	o.markHold(g, t.victims, items)
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
	case len(c.Items) > 0:
		return o.releaseSome(g, c)
	}
	g.remember(o.heldBy(g))
	for _, it := range o.heldBy(g) {
		if c.ItemState != "" {
			o.giveBack(it, c.ItemState)
		}
	}
	o.end(g, quota.Released)
	return verdict{fence: g.fence}
}

func (o *oracle) end(g *grant, state quota.State) {
	at := o.now
	g.ended, g.state = &at, state
	o.ends = append(o.ends, g)
	if g.until != 0 && state != quota.Released && o.takenBack(g) {
		return
	}
	for i, c := range g.request.Claims {
		o.mark(c.Tree)
		o.slide(c.Tree, g.placed[i])
	}
	o.giveAll(g, state)
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
	case c.Mode > quota.Wait:
		return nil, refusal(quota.Invalid, "mode")
	case (c.Mode == quota.Reserve) != (c.ReserveFor != 0) || c.ReserveFor < 0 || c.ReserveFor > quota.MaxReserve:
		return nil, refusal(quota.Invalid, "reserve_ms")
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
		if c.Mode != quota.Force && o.borrows(claim.Tree, at) && !o.isLeaf(claim.Tree, at) {
			return nil, refusal(quota.Invalid, field+"node")
		}
		if kind, of := wrongAmount(spec, claim); kind != 0 {
			return nil, refusal(kind, field+of)
		}
		for _, before := range c.Claims[:i] {
			if before.Tree == claim.Tree && before.Node == claim.Node {
				return nil, refusal(quota.Invalid, field+"node")
			}
		}
		placed = append(placed, at)
	}
	return placed, verdict{}
}

func (o *oracle) placeAt(spec quota.TreeSpec, path string) (string, quota.Kind) {
	if nodeOf(spec, path) == nil && !o.goodPath(path) {
		return "", quota.Invalid
	}
	for at := path; ; at = above(at) {
		if nodeOf(spec, at) == nil {
			continue
		}
		if at != path && policyOf(spec, at) != "open" {
			return "", quota.NotFound
		}
		return at, 0
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

func wrongAmount(spec quota.TreeSpec, c quota.Claim) (quota.Kind, string) {
	amounts := c.Amounts
	if len(amounts)+len(c.Picks) == 0 {
		return quota.Invalid, "amounts"
	}
	for i, a := range amounts {
		of := "amounts[" + a.Resource + "]"
		switch {
		case !registers(spec, a.Resource):
			return quota.NotFound, of
		case itemized(spec, a.Resource) != nil:
			return quota.Invalid, of
		case a.Amount < 0 || a.Amount > quota.MaxAmount || i > 0 && amounts[i-1].Resource >= a.Resource:
			return quota.Invalid, of
		}
	}
	for _, p := range c.Picks {
		if itemized(spec, p.Resource) == nil {
			return map[bool]quota.Kind{true: quota.Invalid, false: quota.NotFound}[registers(spec, p.Resource)], "items[" + p.Resource + "]"
		}
	}
	return 0, ""
}

func registers(spec quota.TreeSpec, name string) bool {
	return slices.ContainsFunc(spec.Resources, func(r quota.Resource) bool { return r.Name == name })
}

// violations asks every node on the way of every claim about every resource that the request wants in its subtree.
func (o *oracle) violations(claims []quota.Claim, placed []string) []quota.Violation {
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range claims {
		for _, path := range upwards(placed[i]) {
			if asked[c.Tree+":"+path] {
				continue
			}
			asked[c.Tree+":"+path] = true
			for _, r := range o.trees[c.Tree].Resources {
				want, wanted := requested(claims, placed, c.Tree, path, r.Name)
				used, limit := o.used(c.Tree, path, r.Name), o.ceiling(c.Tree, path, r.Name)
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
		for i := range g.request.Claims {
			if !o.isOut(claimOf{g, i}) {
				more, _ := requested(g.request.Claims[i:i+1], g.placed[i:i+1], tree, path, resource)
				sum.Add(sum, more)
			}
		}
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

// effective is the limit that is set, or what the policy makes of none.
func effective(spec quota.TreeSpec, path, resource string) quota.Limit {
	for _, l := range nodeOf(spec, path).Limits {
		if l.Resource == resource {
			return l.Limit
		}
	}
	if policyOf(spec, path) == "open" {
		return quota.NoLimit()
	}
	return quota.AtMost(0)
}
