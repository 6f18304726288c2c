package state

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// Thresholds of limits (docs/adr/0095): which of them are crossed is state of the ledger, because a threshold that was
// crossed stays so until the use has fallen below it by a margin. Charges only note where use has changed, and the end
// of the command compares, so use that rises and falls within one command crosses nothing.

type usedCell struct {
	node     *Node
	resource *Resource
}

func (f *Forest) noteUse(n *Node, r *Resource) {
	last := usedCell{n, r}
	if k := len(f.UsedCells); k == 0 || f.UsedCells[k-1] != last {
		f.UsedCells = append(f.UsedCells, last)
	}
}

// ForgetUses drops what dry runs have noted: they leave all use as it was.
func (f *Forest) ForgetUses() {
	clear(f.UsedCells)
	f.UsedCells = f.UsedCells[:0]
}

// NoteLimits records that limits of a node have changed.
func (f *Forest) NoteLimits(n *Node) {
	if n.HasThresholds {
		for _, r := range n.Tree.Resources {
			f.noteUse(n, r)
		}
	}
}

func (t *Tree) HasAnyThresholds() bool {
	return !t.Root.Walk(func(n *Node) bool { return n.Thresholds == nil && n.Crossed == nil })
}

// InheritThresholds derives the thresholds in force.
func (n *Node) InheritThresholds() {
	own, above := &n.Spec.Thresholds, n.Parent
	n.Thresholds = nil
	switch {
	case own.None:
	case len(own.Percents) > 0:
		n.Thresholds = own
	case above != nil:
		n.Thresholds = above.Thresholds
	}
	n.HasThresholds = n.Thresholds != nil || above != nil && above.HasThresholds
}

// crossings collects the events of one command about thresholds.
type crossings struct {
	state *State
	count int
}

// JudgeThresholds compares the noted uses with their thresholds. It runs at the end of a command.
func (s *State) JudgeThresholds() {
	c := crossings{state: s}
	for _, cell := range s.Forest.UsedCells {
		for n := cell.node; n != nil; n = n.Parent {
			if (n.Thresholds != nil || n.Crossed != nil) && s.Forest.counts(cell, n) {
				c.judge(n, cell.resource)
			}
		}
	}
	for _, t := range s.Forest.Rewarned {
		c.judgeTree(t)
	}
	s.Forest.ForgetUses()
	s.Forest.Rewarned = nil
	if c.count > quota.MaxCrossings {
		s.Journal.omitCrossings(c.count - quota.MaxCrossings)
	}
}

// counts is true if a node is still the one that a change of use was noted at or below. A dynamic node that has become
// idle is not in its tree any more, but what it had crossed must be told to be over.
func (f *Forest) counts(cell usedCell, n *Node) bool {
	t := f.Trees[n.TreeName]
	return t == n.Tree && t.Resource(cell.resource.Name) == cell.resource && (n.Dynamic || t.ByPath[n.Path] == n)
}

// judgeTree is needed when the configuration of a tree has changed.
func (c *crossings) judgeTree(t *Tree) {
	if c.state.Forest.Trees[t.Name] != t {
		return
	}
	t.Root.Walk(func(n *Node) bool {
		c.judgeNode(n)
		return true
	})
}

func (c *crossings) judgeNode(n *Node) {
	if n.Thresholds == nil && n.Crossed == nil {
		return
	}
	for r := range n.Crossed {
		if n.Tree.Resource(r.Name) != r {
			delete(n.Crossed, r) // the order does not matter
		}
	}
	for _, r := range n.Tree.Resources {
		c.judge(n, r)
	}
}

// judge compares one use, and notes what was crossed. Lists of crossed thresholds are replaced, never changed.
func (c *crossings) judge(n *Node, r *Resource) {
	previous := n.Crossed[r]
	updated := n.crossedNow(r, previous)
	if slices.Equal(previous, updated) {
		return
	}
	n.SetCrossed(r, updated)
	for _, percent := range previous {
		if !slices.Contains(updated, percent) {
			c.note(quota.EventCleared, FactCleared, n, r, percent)
		}
	}
	for _, percent := range updated {
		if !slices.Contains(previous, percent) {
			c.note(quota.EventCrossed, FactCrossed, n, r, percent)
		}
	}
}

// crossedNow are the thresholds that are crossed, given those that were. One that was is cleared as soon as the use is
// the margin below it.
func (n *Node) crossedNow(r *Resource, previous []int) []int {
	if n.Thresholds == nil {
		return nil
	}
	var updated []int
	used, limit, margin := n.Subtree[r.Index], n.Effective(r.Index), n.Thresholds.MarginInForce()
	for _, percent := range n.Thresholds.Percents {
		stays := slices.Contains(previous, percent) && used.Exceeds(percent-margin, limit)
		if used.Reaches(percent, limit) || stays {
			updated = append(updated, percent)
		}
	}
	return updated
}

func (n *Node) SetCrossed(r *Resource, percents []int) {
	switch {
	case len(percents) > 0 && n.Crossed == nil:
		n.Crossed = map[*Resource][]int{r: percents}
	case len(percents) > 0:
		n.Crossed[r] = percents
	default:
		if delete(n.Crossed, r); len(n.Crossed) == 0 {
			n.Crossed = nil
		}
	}
}

func (c *crossings) note(kind quota.EventKind, fact FactKind, n *Node, r *Resource, percent int) {
	if c.count++; c.count > quota.MaxCrossings {
		return
	}
	j := &c.state.Journal
	crossing := &quota.Crossing{
		Tree: n.TreeName, Node: n.Path, Resource: r.Name, Percent: percent, Used: n.Subtree[r.Index],
		Limit: n.Effective(r.Index),
	}
	j.NoteEvent(quota.Event{Kind: kind, Crossing: crossing})
	j.Facts = append(j.Facts, Fact{Kind: fact, Crossing: crossing})
}

// omitCrossings says in the newest event how many crossings of the command have none. The fact shares it.
func (j *Journal) omitCrossings(n int) {
	j.Events[len(j.Events)-1].Crossing.Omitted = n
}

// CheckThresholds refuses thresholds that cannot be.
func CheckThresholds(w *quota.Thresholds, field string) *quota.Error {
	if w.None && (len(w.Percents) > 0 || w.Margin != 0) {
		return quota.Errorf(quota.Invalid, field, "thresholds are none and still listed; it is one or the other")
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
		return quota.Errorf(quota.Invalid, field+".margin_percent", "a margin needs thresholds; list them, or leave it out")
	case w.Margin < 0 || w.Margin >= w.Percents[0]:
		return quota.Errorf(quota.Invalid, field+".margin_percent",
			"the margin is 1 to %d points, less than the lowest threshold, not %d", w.Percents[0]-1, w.Margin)
	}
	return nil
}

// CheckThresholds verifies that the state of the thresholds agrees with the use: comparing again changes nothing.
func (n *Node) CheckThresholds() error {
	fresh := *n
	fresh.InheritThresholds()
	if fresh.Thresholds.String() != n.Thresholds.String() || fresh.HasThresholds != n.HasThresholds {
		return fmt.Errorf("%s has not the thresholds that it is configured to have", n.Place())
	}
	known := 0
	for _, r := range n.Tree.Resources {
		previous := n.Crossed[r]
		if updated := n.crossedNow(r, previous); !slices.Equal(previous, updated) {
			return fmt.Errorf("I11: %s has crossed the thresholds %v of %s, but should have %v",
				n.Place(), previous, r.Name, updated)
		}
		if len(previous) > 0 {
			known++
		}
	}
	if known != len(n.Crossed) || known == 0 && n.Crossed != nil {
		return fmt.Errorf("%s has crossed thresholds of %d resources, of which its tree has %d", n.Place(), len(n.Crossed),
			known)
	}
	return nil
}
