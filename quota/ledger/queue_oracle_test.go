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

// queued is a list of claims that is held or waits. asked is the request as it came, and request has the claims of the
// list: while it waits the least amounts, and then those that it holds. The lists of one request share their end.
type queued struct {
	request, asked quota.Allocate
	number         int // of the list; 0 if the request has no alternatives
	arrival, fence uint64
	ends           *queueEnds
	line           spotInLine
	headSince      quota.Instant
	// unclaimedUntil is when a grant from the queue ends unless its caller comes for it; 0 once it has.
	unclaimedUntil quota.Instant
	// of is the held job for which this is a resize that waits, with its changes; nil for a request.
	of      *queued
	changes []quota.ClaimChange
}

// queueEnds are the instants at which a request leaves the queue.
type queueEnds struct{ until, keepUntil quota.Instant }

// isList is true for two lists of one request.
func (j *queued) isList(of *queued) bool { return j.ends == of.ends }

// spotInLine names a line; the empty one is none. Those aside are larger than the whole limit, and in nobody's way.
type spotInLine struct {
	tree, node, resource string
	aside                bool
}

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
	if head == nil || !head.before(j) || head.isList(j) {
		return 0
	}
	overtake := cmp.Or(o.trees[s.tree].Overtake, quota.DefaultOvertake)
	if !o.strict(s.tree, s.node) && o.now-head.headSince < quota.Instant(overtake) {
		return 0
	}
	return quota.Amount(o.others(s, j))
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

// others is place without the lists of the same request.
func (o *queueOracle) others(s spotInLine, j *queued) (n int) {
	for _, other := range o.waiting {
		if other.line == s && other.before(j) && !other.isList(j) {
			n++
		}
	}
	return n
}

// blocks lists what is in the way of a job: claims in order, levels upwards, resources by name.
func (o *queueOracle) blocks(j *queued) (list []quota.Violation) {
	seen := map[spotInLine]bool{}
	if j.of != nil {
		return o.blocksResize(j)
	}
	for _, c := range j.request.Claims {
		for _, path := range quotatest.Upwards(c.Node) {
			for _, r := range o.trees[c.Tree].Resources {
				s := spotInLine{c.Tree, path, r.Name, false}
				asked, named := asks(j.request, s)
				if !named || seen[s] {
					continue
				}
				seen[s] = true
				if used, limit := o.used(s), o.limit(s); used+asked > limit {
					list = append(
						list, quota.Violation{
							Tree: s.tree, Node: s.node, Resource: s.resource, Limit: limit,
							Used: used, Requested: asked, Alternative: j.number,
						})
				}
				if n := o.ahead(s, j); n > 0 {
					list = append(
						list, quota.Violation{
							Kind: quota.OfQueue, Tree: s.tree, Node: s.node,
							Resource: s.resource, Used: n, Alternative: j.number,
						})
				}
			}
		}
	}
	return list
}

func lineOf(v quota.Violation) spotInLine {
	return spotInLine{v.Tree, v.Node, v.Resource, v.TooLarge || v.Requested > v.Limit}
}

// linesFor are the lines that a job may stay in: if it is larger than a whole limit, those aside.
func linesFor(list []quota.Violation) (lines []spotInLine) {
	aside := slices.ContainsFunc(list, func(v quota.Violation) bool { return lineOf(v).aside })
	for _, v := range list {
		if line := lineOf(v); line.aside == aside {
			lines = append(lines, line)
		}
	}
	return lines
}

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
	case len(list) == 0 && j.of != nil:
		o.leave(j.request.ID)
		j.of.request.Claims = j.request.Claims
	case len(list) == 0:
		o.leave(j.request.ID)
		o.grant(j)
		j.unclaimedUntil = o.now + quota.Instant(cmp.Or(j.request.Keep, quota.DefaultKeep))
	case !slices.Contains(linesFor(list), j.line):
		j.line = linesFor(list)[0]
	default:
		return false
	}
	o.noteHeads()
	return true
}

func (o *queueOracle) noteHeads() {
	for _, j := range o.waiting {
		if j.headSince == 0 && o.head(j.line) == j && j.line != (spotInLine{}) && !j.line.aside {
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

// leave removes all lists of a request.
func (o *queueOracle) leave(id string) {
	o.waiting = slices.DeleteFunc(o.waiting, func(other *queued) bool { return other.request.ID == id })
}

// find returns what is held under an id, and the lists that wait.
func (o *queueOracle) find(id string) (held *queued, waiting []*queued) {
	for _, j := range o.held {
		if j.request.ID == id {
			held = j
		}
	}
	for _, j := range o.waiting {
		if j.request.ID == id && j.of == nil {
			waiting = append(waiting, j)
		}
	}
	return held, waiting
}

// blockAll lists what is in the way of each of some lists.
func (o *queueOracle) blockAll(lists []*queued) (all []quota.Violation) {
	for _, j := range lists {
		all = append(all, o.blocks(j)...)
	}
	return all
}

// allocate says what becomes of a request.
func (o *queueOracle) allocate(r quota.Allocate) string {
	held, waiting := o.find(r.ID)
	switch {
	case held != nil && unchanged(held.asked, r):
		held.unclaimedUntil = 0
		return "granted again" + alternativeWords(held.number)
	case waiting != nil && unchanged(waiting[0].asked, r):
		o.sign(waiting[0])
		return "waits: " + inOrder(o.blockAll(waiting))
	case held != nil || waiting != nil:
		return "refused"
	}
	lists := listsOf(r)
	for _, j := range lists {
		if len(o.blocks(j)) == 0 {
			o.grant(j)
			return "granted" + alternativeWords(j.number)
		}
	}
	list := o.blockAll(lists)
	possible := slices.DeleteFunc(slices.Clone(lists), func(j *queued) bool {
		return slices.ContainsFunc(o.blocks(j), func(v quota.Violation) bool { return v.Requested > v.Limit })
	})
	if r.Mode != quota.Wait || len(possible) == 0 {
		return "denied: " + inOrder(list)
	}
	for i, j := range lists {
		j.line = lineOf(o.blocks(j)[0])
		j.arrival = o.arrival + uint64(i) + 1
	}
	o.arrival += uint64(len(lists))
	possible[0].ends.until = o.now + quota.Instant(cmp.Or(r.WaitFor, quota.MaxWait))
	o.sign(possible[0])
	o.enter(possible...)
	return "waits: " + inOrder(list)
}

func (o *queueOracle) enter(lists ...*queued) {
	o.waiting = append(o.waiting, lists...)
	slices.SortFunc(o.waiting, func(a, b *queued) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
}

// listsOf makes a list of each alternative of a request, or one if it has none.
func listsOf(r quota.Allocate) (lists []*queued) {
	ends := &queueEnds{}
	if len(r.AnyOf) == 0 {
		return []*queued{{request: r, asked: r, arrival: 1 << 62, ends: ends}}
	}
	for i, claims := range r.AnyOf {
		one := r
		one.Claims, one.AnyOf = claims, nil
		lists = append(lists, &queued{request: one, asked: r, number: i + 1, arrival: 1 << 62, ends: ends})
	}
	return lists
}

func (o *queueOracle) sign(j *queued) {
	j.ends.keepUntil = o.now + quota.Instant(cmp.Or(j.request.Keep, quota.DefaultKeep))
}

func unchanged(a, b quota.Allocate) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func inOrder(list []quota.Violation) string { return fmt.Sprintf("%+v", list) }

// end ends whatever has an id.
func (o *queueOracle) end(id string) {
	held, _ := o.find(id)
	o.leave(id)
	o.held = slices.DeleteFunc(o.held, func(j *queued) bool { return j == held })
}

// expire ends those whose time is over, the first ones first: what is held before what waits, by fence or arrival. What
// one leaves is given away before the next instant.
func (o *queueOracle) expire(most int) {
	last := quota.Instant(0)
	for most > 0 {
		first, at := o.nextDue()
		switch {
		case first == nil:
			return
		case last > 0 && at > last:
			o.settle()
			last = 0
			continue
		case first.unclaimedUntil != 0:
			o.end(first.request.ID)
		default:
			o.leave(first.request.ID)
		}
		last = at
		most--
	}
}

// nextDue is what ends first of what is due, and when it was.
func (o *queueOracle) nextDue() (first *queued, at quota.Instant) {
	for _, j := range o.held {
		if until := j.unclaimedUntil; until != 0 && until <= o.now && (first == nil ||
			cmp.Or(cmp.Compare(until, at), cmp.Compare(j.fence, first.fence)) < 0) {
			first, at = j, until
		}
	}
	for _, j := range o.waiting {
		until := min(j.ends.until, j.ends.keepUntil)
		if until <= o.now && (first == nil || until < at ||
			until == at && first.unclaimedUntil == 0 && j.arrival < first.arrival) {
			first, at = j, until
		}
	}
	return first, at
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
		fmt.Fprintf(&text, "%s holds %v under %d until %d%s\n", j.request.ID, amounts, j.fence, j.unclaimedUntil,
			alternativeWords(j.number))
	}
	for i, j := range o.waiting {
		if i == 0 || !j.isList(o.waiting[i-1]) {
			_, lists := o.find(j.request.ID)
			if j.of != nil {
				lists = []*queued{j}
			}
			fmt.Fprintf(&text, "%s waits until %d or %d: %s\n", j.request.ID, j.ends.until, j.ends.keepUntil,
				inOrder(o.blockAll(lists)))
		}
		what := j.line.resource
		if j.line.aside {
			what = "a higher limit of " + what
		}
		fmt.Fprintf(&text, "  %d is number %d for %s at %s\n", j.number, o.place(j.line, j)+1, what,
			quota.Place(j.line.tree, j.line.node))
	}
	return text.String()
}
