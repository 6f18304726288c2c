package ledger_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// queueOracle is the queue the slow way: after every command it tries all requests in the order of the queue, from the
// first again whenever something has changed. It knows trees of plain limits, and adds up from scratch what is held.
type queueOracle struct {
	now     quota.Instant
	trees   map[string]quota.TreeSpec
	held    []*queued
	waiting []*queued // in the order of the queue
	arrival uint64
	fence   uint64
}

// queued is a request that is held or waits. asked has the least amounts, and request those that it holds.
type queued struct {
	request, asked   quota.Allocate
	arrival, fence   uint64
	until, keepUntil quota.Instant
	line             spotInLine
	headSince        quota.Instant
}

// spotInLine names a line; the empty one is none.
type spotInLine struct{ tree, node, resource string }

func (j *queued) before(other *queued) bool {
	return cmp.Or(-cmp.Compare(j.request.Priority, other.request.Priority), cmp.Compare(j.arrival, other.arrival)) < 0
}

func (o *queueOracle) node(tree, path string) quota.NodeSpec {
	for _, n := range o.trees[tree].Nodes {
		if n.Path == path {
			return n
		}
	}
	panic("no node " + tree + ":" + path)
}

func (o *queueOracle) limit(s spotInLine) quota.Amount {
	for _, l := range o.node(s.tree, s.node).Limits {
		if l.Resource == s.resource {
			return l.Limit.Amount
		}
	}
	return quota.MaxAmount
}

func (o *queueOracle) strict(tree, path string) bool {
	for _, at := range quotatest.Upwards(path) {
		if q := o.node(tree, at).Queueing; q != quota.InheritQueueing {
			return q == quota.Strict
		}
	}
	return false
}

// asks is what a request asks of a spot, and whether it names the resource there at all.
func asks(r quota.Allocate, s spotInLine) (sum quota.Amount, named bool) {
	for _, c := range r.Claims {
		for _, component := range c.Amounts {
			if c.Tree == s.tree && component.Resource == s.resource && slices.Contains(quotatest.Upwards(c.Node), s.node) {
				sum, named = sum+component.Amount, true
			}
		}
	}
	return sum, named
}

func (o *queueOracle) used(s spotInLine) (sum quota.Amount) {
	for _, j := range o.held {
		more, _ := asks(j.request, s)
		sum += more
	}
	return sum
}

// head is the first in a line.
func (o *queueOracle) head(s spotInLine) *queued {
	for _, j := range o.waiting {
		if j.line == s {
			return j
		}
	}
	return nil
}

// ahead is how many in a line a job must not overtake.
func (o *queueOracle) ahead(s spotInLine, j *queued) quota.Amount {
	head := o.head(s)
	if head == nil || !head.before(j) {
		return 0
	}
	overtake := cmp.Or(o.trees[s.tree].Overtake, quota.DefaultOvertake)
	if !o.strict(s.tree, s.node) && o.now-head.headSince < quota.Instant(overtake) {
		return 0
	}
	return quota.Amount(o.place(s, j))
}

// place is how many in a line are before a job.
func (o *queueOracle) place(s spotInLine, j *queued) (n int) {
	for _, other := range o.waiting {
		if other.line == s && other.before(j) {
			n++
		}
	}
	return n
}

// blocks lists what is in the way of a job: claims in order, levels upwards, resources by name.
func (o *queueOracle) blocks(j *queued) (list []quota.Violation) {
	seen := map[spotInLine]bool{}
	for _, c := range j.request.Claims {
		for _, path := range quotatest.Upwards(c.Node) {
			for _, r := range o.trees[c.Tree].Resources {
				s := spotInLine{c.Tree, path, r.Name}
				asked, named := asks(j.request, s)
				if !named || seen[s] {
					continue
				}
				seen[s] = true
				if used, limit := o.used(s), o.limit(s); used+asked > limit {
					list = append(
						list, quota.Violation{
							Tree: s.tree, Node: s.node, Resource: s.resource, Limit: limit,
							Used: used, Requested: asked,
						})
				}
				if n := o.ahead(s, j); n > 0 {
					list = append(
						list, quota.Violation{
							Kind: quota.OfQueue, Tree: s.tree, Node: s.node,
							Resource: s.resource, Used: n,
						})
				}
			}
		}
	}
	return list
}

func lineOf(v quota.Violation) spotInLine { return spotInLine{v.Tree, v.Node, v.Resource} }

// settle does what freed room allows, until nothing changes any more.
func (o *queueOracle) settle() {
	for again := true; again; {
		again = false
		for _, j := range o.waiting {
			if again = o.try(j); again {
				break
			}
		}
	}
}

// try grants a job that waits, or finds the line that it stands in; true if that changed something.
func (o *queueOracle) try(j *queued) bool {
	o.noteHeads()
	list := o.blocks(j)
	switch {
	case len(list) == 0:
		o.leave(j)
		o.grant(j)
	case !slices.ContainsFunc(list, func(v quota.Violation) bool { return lineOf(v) == j.line }):
		j.line = lineOf(list[0])
	default:
		return false
	}
	o.noteHeads()
	return true
}

func (o *queueOracle) noteHeads() {
	for _, j := range o.waiting {
		if j.headSince == 0 && o.head(j.line) == j && j.line != (spotInLine{}) {
			j.headSince = o.now
		}
	}
}

// grant gives a request the most steps of its ranges that fit: it tries all of them.
func (o *queueOracle) grant(j *queued) {
	least := j.request
	for steps := range 5 { // quotatest.WithRanges draws up to 4
		wider := *j
		wider.request.Claims = nil
		for _, c := range least.Claims {
			c.Amounts = slices.Clone(c.Amounts)
			for _, r := range c.Ranges {
				for i := range c.Amounts {
					if c.Amounts[i].Resource == r.Resource {
						c.Amounts[i].Amount = min(c.Amounts[i].Amount+quota.Amount(steps)*r.Step, r.Most)
					}
				}
			}
			wider.request.Claims = append(wider.request.Claims, c)
		}
		if len(o.blocks(&wider)) == 0 {
			j.request = wider.request
		}
	}
	o.fence++
	j.fence = o.fence
	o.held = append(o.held, j)
}

func (o *queueOracle) leave(j *queued) {
	o.waiting = slices.DeleteFunc(o.waiting, func(other *queued) bool { return other == j })
}

func (o *queueOracle) find(id string) (held, waiting *queued) {
	for _, j := range o.held {
		if j.request.ID == id {
			held = j
		}
	}
	for _, j := range o.waiting {
		if j.request.ID == id {
			waiting = j
		}
	}
	return held, waiting
}

// allocate says what becomes of a request.
func (o *queueOracle) allocate(r quota.Allocate) string {
	held, waiting := o.find(r.ID)
	switch {
	case held != nil && unchanged(held.asked, r):
		return "granted again"
	case waiting != nil && unchanged(waiting.asked, r):
		o.sign(waiting)
		return "waits: " + inOrder(o.blocks(waiting))
	case held != nil || waiting != nil:
		return "refused"
	}
	j := &queued{request: r, asked: r, arrival: 1 << 62}
	list := o.blocks(j)
	switch {
	case len(list) == 0:
		o.grant(j)
		return "granted"
	case r.Mode != quota.Wait || slices.ContainsFunc(list,
		func(v quota.Violation) bool { return v.Requested > v.Limit }):
		return "denied: " + inOrder(list)
	}
	o.arrival++
	j.arrival, j.line = o.arrival, lineOf(list[0])
	j.until = o.now + quota.Instant(cmp.Or(r.WaitFor, quota.MaxWait))
	o.sign(j)
	o.waiting = append(o.waiting, j)
	slices.SortFunc(o.waiting, func(a, b *queued) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return "waits: " + inOrder(list)
}

func (o *queueOracle) sign(j *queued) {
	j.keepUntil = o.now + quota.Instant(cmp.Or(j.request.Keep, quota.DefaultKeep))
}

func unchanged(a, b quota.Allocate) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func inOrder(list []quota.Violation) string { return fmt.Sprintf("%+v", list) }

// end ends whatever has an id.
func (o *queueOracle) end(id string) {
	held, waiting := o.find(id)
	o.leave(waiting)
	o.held = slices.DeleteFunc(o.held, func(j *queued) bool { return j == held })
}

// expire drops those whose time is over, the first ones first.
func (o *queueOracle) expire(most int) {
	due := func(j *queued) quota.Instant { return min(j.until, j.keepUntil) }
	for range most {
		var first *queued
		for _, j := range o.waiting {
			if due(j) <= o.now && (first == nil ||
				cmp.Or(cmp.Compare(due(j), due(first)), cmp.Compare(j.arrival, first.arrival)) < 0) {
				first = j
			}
		}
		if first == nil {
			return
		}
		o.leave(first)
	}
}

// configure puts a tree in the place of another of the same nodes: requests that wait there are queued again.
func (o *queueOracle) configure(spec quota.TreeSpec) {
	if fmt.Sprint(o.trees[spec.Name]) == fmt.Sprint(spec) {
		return
	}
	o.trees[spec.Name] = spec
	for _, j := range o.waiting {
		if j.line.tree == spec.Name {
			j.line = spotInLine{}
		}
	}
}

// queue says who waits where, and who holds what.
func (o *queueOracle) state() string {
	var text strings.Builder
	for _, j := range o.held {
		var amounts []quota.Vector
		for _, c := range j.request.Claims {
			amounts = append(amounts, c.Amounts)
		}
		fmt.Fprintf(&text, "%s holds %v under %d\n", j.request.ID, amounts, j.fence)
	}
	for _, j := range o.waiting {
		fmt.Fprintf(&text, "%s is number %d for %s at %s, until %d or %d: %s\n", j.request.ID, o.place(j.line, j)+1,
			j.line.resource, quota.Place(j.line.tree, j.line.node), j.until, j.keepUntil, inOrder(o.blocks(j)))
	}
	return text.String()
}
