package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// Thresholds of limits (docs/adr/0095): which of them are crossed is state of the ledger, because a threshold that was
// crossed stays so until the use has fallen below it by a margin. Charges only note where use has changed, and the end
// of the command compares, so use that rises and falls within one command crosses nothing.

// usedCell is a resource at a node whose use has changed.
type usedCell struct {
	node     *node
	resource *resource
}

// noteUse records a change of use at a node and above it.
func (f *forest) noteUse(n *node, r *resource) {
	last := usedCell{n, r}
	if k := len(f.usedCells); k == 0 || f.usedCells[k-1] != last {
		f.usedCells = append(f.usedCells, last)
	}
}

// forgetUses drops what dry runs have noted: they leave all use as it was.
func (f *forest) forgetUses() {
	clear(f.usedCells)
	f.usedCells = f.usedCells[:0]
}

// noteLimits records that limits of a node have changed.
func (f *forest) noteLimits(n *node) {
	if n.hasThresholds {
		for _, r := range n.tree.resources {
			f.noteUse(n, r)
		}
	}
}

func (t *tree) hasAnyThresholds() bool {
	return !t.root.walk(func(n *node) bool { return n.warnAt == nil && n.crossed == nil })
}

// inheritThresholds derives the thresholds in force.
func (n *node) inheritThresholds() {
	own, above := &n.spec.WarnAt, n.parent
	n.warnAt = nil
	switch {
	case own.Off:
	case len(own.Percents) > 0:
		n.warnAt = own
	case above != nil:
		n.warnAt = above.warnAt
	}
	n.hasThresholds = n.warnAt != nil || above != nil && above.hasThresholds
}

// crossings collects the events of one command about thresholds.
type crossings struct {
	ledger *Ledger
	count  int
}

// judgeThresholds compares the noted uses with their thresholds. It runs at the end of a command.
func (l *Ledger) judgeThresholds() {
	c := crossings{ledger: l}
	for _, cell := range l.forest.usedCells {
		for n := cell.node; n != nil; n = n.parent {
			if (n.warnAt != nil || n.crossed != nil) && l.forest.counts(cell, n) {
				c.judge(n, cell.resource)
			}
		}
	}
	for _, t := range l.forest.rewarned {
		c.judgeTree(t)
	}
	l.forest.forgetUses()
	l.forest.rewarned = nil
	if c.count > quota.MaxCrossings {
		l.journal.omitCrossings(c.count - quota.MaxCrossings)
	}
}

// counts is true if a node is still the one that a change of use was noted at or below. A dynamic node that has become
// idle is not in its tree any more, but what it had crossed must be told to be over.
func (f *forest) counts(cell usedCell, n *node) bool {
	t := f.trees[n.treeName]
	return t == n.tree && t.resource(cell.resource.Name) == cell.resource && (n.dynamic || t.byPath[n.path] == n)
}

// judgeTree compares all uses of a tree, whose configuration has changed.
func (c *crossings) judgeTree(t *tree) {
	if c.ledger.forest.trees[t.name] != t {
		return
	}
	t.root.walk(func(n *node) bool {
		c.judgeNode(n)
		return true
	})
}

// judgeNode compares all uses of a node.
func (c *crossings) judgeNode(n *node) {
	if n.warnAt == nil && n.crossed == nil {
		return
	}
	for r := range n.crossed {
		if n.tree.resource(r.Name) != r {
			delete(n.crossed, r) // the order does not matter
		}
	}
	for _, r := range n.tree.resources {
		c.judge(n, r)
	}
}

// judge compares one use, and notes what was crossed. Lists of crossed thresholds are replaced, never changed.
func (c *crossings) judge(n *node, r *resource) {
	was := n.crossed[r]
	is := n.crossedNow(r, was)
	if slices.Equal(was, is) {
		return
	}
	n.setCrossed(r, is)
	for _, percent := range was {
		if !slices.Contains(is, percent) {
			c.note(quota.EventCleared, FactCleared, n, r, percent)
		}
	}
	for _, percent := range is {
		if !slices.Contains(was, percent) {
			c.note(quota.EventCrossed, FactCrossed, n, r, percent)
		}
	}
}

// crossedNow are the thresholds that are crossed, given those that were. One that was is cleared as soon as the use is
// the margin below it.
func (n *node) crossedNow(r *resource, was []int) []int {
	if n.warnAt == nil {
		return nil
	}
	var is []int
	used, limit, margin := n.subtree[r.index], n.effective(r.index), n.warnAt.MarginInForce()
	for _, percent := range n.warnAt.Percents {
		stays := slices.Contains(was, percent) && used.Exceeds(percent-margin, limit)
		if used.Reaches(percent, limit) || stays {
			is = append(is, percent)
		}
	}
	return is
}

func (n *node) setCrossed(r *resource, percents []int) {
	switch {
	case len(percents) > 0 && n.crossed == nil:
		n.crossed = map[*resource][]int{r: percents}
	case len(percents) > 0:
		n.crossed[r] = percents
	default:
		if delete(n.crossed, r); len(n.crossed) == 0 {
			n.crossed = nil
		}
	}
}

func (c *crossings) note(kind quota.EventKind, fact FactKind, n *node, r *resource, percent int) {
	if c.count++; c.count > quota.MaxCrossings {
		return
	}
	j := &c.ledger.journal
	crossing := &quota.Crossing{
		Tree: n.treeName, Node: n.path, Resource: r.Name, Percent: percent, Used: n.subtree[r.index],
		Limit: n.effective(r.index),
	}
	j.noteEvent(quota.Event{Kind: kind, Crossing: crossing})
	j.facts = append(j.facts, Fact{Kind: fact, Crossing: crossing})
}

// omitCrossings says in the newest event how many crossings of the command have none. The fact shares it.
func (j *journal) omitCrossings(n int) {
	j.events[len(j.events)-1].Crossing.Omitted = n
}

// checkWarnAt refuses thresholds that cannot be.
func checkWarnAt(w *quota.WarnAt, field string) *quota.Error {
	if w.Off && (len(w.Percents) > 0 || w.Margin != 0) {
		return quota.Errorf(quota.Invalid, field, "thresholds are off and still listed; it is one or the other")
	}
	if n := len(w.Percents); n > quota.MaxThresholds {
		return quota.Errorf(quota.Invalid, field+".percents", "there are %d thresholds; at most %d are allowed", n,
			quota.MaxThresholds)
	}
	for i, percent := range w.Percents {
		at := fmt.Sprintf("%s.percents[%d]", field, i)
		switch {
		case percent < 1 || percent > quota.MaxThresholdPercent:
			return quota.Errorf(quota.Invalid, at, "a threshold is 1 to %d percent of a limit, not %d",
				quota.MaxThresholdPercent, percent)
		case i > 0 && w.Percents[i-1] >= percent:
			return quota.Errorf(quota.Invalid, at, "the threshold %d is not in order, or there twice", percent)
		}
	}
	switch {
	case w.Margin == 0:
		return nil
	case len(w.Percents) == 0:
		return quota.Errorf(quota.Invalid, field+".margin", "a margin needs thresholds; list them, or leave it out")
	case w.Margin < 0 || w.Margin >= w.Percents[0]:
		return quota.Errorf(quota.Invalid, field+".margin",
			"the margin is 1 to %d points, less than the lowest threshold, not %d", w.Percents[0]-1, w.Margin)
	}
	return nil
}

// checkThresholds verifies that the state of the thresholds agrees with the use: comparing again changes nothing.
func (n *node) checkThresholds() error {
	fresh := *n
	fresh.inheritThresholds()
	if fresh.warnAt.String() != n.warnAt.String() || fresh.hasThresholds != n.hasThresholds {
		return fmt.Errorf("%s has not the thresholds that it is configured to have", n.place())
	}
	known := 0
	for _, r := range n.tree.resources {
		was := n.crossed[r]
		if is := n.crossedNow(r, was); !slices.Equal(was, is) {
			return fmt.Errorf("I11: %s has crossed the thresholds %v of %s, but should have %v", n.place(), was, r.Name, is)
		}
		if len(was) > 0 {
			known++
		}
	}
	if known != len(n.crossed) || known == 0 && n.crossed != nil {
		return fmt.Errorf("%s has crossed thresholds of %d resources, of which its tree has %d", n.place(), len(n.crossed),
			known)
	}
	return nil
}
