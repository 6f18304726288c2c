package read

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// RedactOutcome leaves out of an outcome what the caller may not see.
func (r Reader) RedactOutcome(o state.Outcome) state.Outcome {
	if r.id == nil {
		return o
	}
	if d := o.Decision; d != nil && (len(d.Preempted) > 0 || len(d.Violations) > 0) {
		seen := r.RedactDecision(*d)
		o.Decision = &seen
	}
	if c := o.Configuration; c != nil && (c.Effects != nil || len(c.Over) > 0) {
		seen := r.redactConfiguration(*c)
		o.Configuration = &seen
	}
	if a := o.Allocation; a != nil && !r.id.Is(a.Owner) {
		o.Allocation = a.WithoutData()
	}
	o.Items = r.shownItems(o.Items)
	if len(o.Restored) > 0 {
		o.Restored = slices.DeleteFunc(slices.Clone(o.Restored), func(id string) bool {
			info, err := r.anyAllocation(id)
			return err != nil || !r.Sees(&info)
		})
	}
	if o.Refused != nil && o.Refused.Kind == quota.PolicyBreach {
		o.Refused = r.redactBreaches(o.Refused)
	}
	return o
}

// redactConfiguration hides what a change means at places where the caller may not read usage, and for whom.
func (r Reader) redactConfiguration(c quota.Configuration) quota.Configuration {
	c.Over = slices.DeleteFunc(slices.Clone(c.Over), func(o quota.Overuse) bool {
		verb := access.UsageRead
		if o.Holder.Name != "" {
			verb = access.HoldersRead
		}
		return !r.May(verb, o.Tree, o.Node)
	})
	if c.Effects == nil {
		return c
	}
	effects := *c.Effects
	effects.Rooms = slices.DeleteFunc(slices.Clone(effects.Rooms), func(room quota.RoomChange) bool {
		return !r.May(access.UsageRead, room.Tree, room.Node)
	})
	if !r.May(access.HoldersRead, "", "") {
		effects.Admitted = nil
	}
	c.Effects = &effects
	return c
}

// redactBreaches leaves out the limits in rules of nodes whose configuration the caller may not read, and the nodes
// themselves unless they are above others that it sees.
func (r Reader) redactBreaches(err *quota.Error) *quota.Error {
	hidden := func(b quota.Breach) bool { return !r.May(access.ConfigRead, b.Tree, b.Node) }
	if !slices.ContainsFunc(err.Breaches, hidden) {
		return err
	}
	seen := slices.Clone(err.Breaches)
	for i := range seen {
		b := &seen[i]
		if !hidden(*b) {
			continue
		}
		b.Text = "a rule does not allow it; ask an administrator of that node"
		if n := r.state.Forest.NearestNode(b.Tree, b.Node); n == nil || n.Path != b.Node || !r.seesBelow(n) {
			b.Node, b.Text = "", "a rule of another node does not allow it; ask an administrator of the tree"
		}
	}
	return quota.NewBreachError(seen)
}

// RedactDecision hides the names of other allocations, who may set limits where the caller may not read the
// configuration, and of the levels above what their tree does not show.
func (r Reader) RedactDecision(d quota.Decision) quota.Decision {
	hidden := func(tree, node string) bool { return !r.May(access.HoldersRead, tree, node) }
	if slices.ContainsFunc(d.Preempted, func(p quota.Preempted) bool { return hidden(p.Tree, p.Node) }) {
		d.Preempted = r.hiddenVictims(d.Preempted)
	}
	d.Holders = r.ShownHolders(d.Holders)
	shown := r.shownViolations(d.Violations)
	if d.Remedy == nil {
		d.Violations = shown
		return d
	}
	remedy := *d.Remedy
	if slices.ContainsFunc(d.Violations, func(v quota.Violation) bool { return hidden(v.Tree, v.Node) }) {
		remedy.Releases = nil
	}
	if slices.ContainsFunc(shown, func(v quota.Violation) bool { return v.Seen != quota.SeeTotals }) {
		remedy.Raises = nil // together they would say what the violations do not
	}
	d.Violations, d.Remedy = shown, &remedy
	return d
}

// shownViolations are the violations as far as the caller may see the levels at which they are.
func (r Reader) shownViolations(list []quota.Violation) []quota.Violation {
	var shown []quota.Violation
	for i, v := range list {
		see := r.seenOf(r.state.Forest.NearestNode(v.Tree, v.Node))
		if see == quota.SeeTotals {
			continue
		}
		if shown == nil {
			shown = slices.Clone(list)
		}
		shown[i] = v.ShownAs(see)
	}
	if shown == nil {
		return list
	}
	return shown
}

// ShownHolders are who is in the way as far as the caller may see the totals of their levels.
func (r Reader) ShownHolders(list []quota.LevelHolders) []quota.LevelHolders {
	var shown []quota.LevelHolders
	for _, level := range list {
		switch r.seenOf(r.state.Forest.NearestNode(level.Tree, level.Node)) {
		case quota.SeeTotals:
		case quota.SeeNames:
			level.Others, level.OtherAllocations, level.OtherAhead = 0, 0, 0
			level.Ahead = slices.Clone(level.Ahead)
			for i := range level.Ahead {
				level.Ahead[i].Position = 0
			}
		case quota.SeeNothing:
			continue
		}
		if HasHolders(level.Kind) || len(level.Ahead)+level.OtherAhead > 0 {
			shown = append(shown, level)
		}
	}
	return shown
}

// ShownLevels are the levels as far as the caller may see them. Of a level whose totals it does not see, it learns no
// limit that does not stop the request, because requests do not have to pass such limits everywhere.
func (r Reader) ShownLevels(list []quota.LevelCheck) []quota.LevelCheck {
	var shown []quota.LevelCheck
	for _, c := range list {
		see := r.seenOf(r.state.Forest.NearestNode(c.Tree, c.Node))
		hidden := see == quota.SeeNothing || see == quota.SeeNames && !c.IsOfEveryRequest()
		if !hidden || c.Verdict == quota.LevelExceeded {
			shown = append(shown, c.ShownAs(see))
		}
	}
	return shown
}

// HasHolders is true for limits of what allocations hold.
func HasHolders(kind quota.ViolationKind) bool {
	return kind == quota.OfResource || kind == quota.OfItems || kind == quota.OfApplications
}
