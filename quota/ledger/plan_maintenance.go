package ledger

import "github.com/quorate/quorate/quota"

// planMaintenance checks a change of a tree's maintenance. Leaving it answers everything that is over a limit.
func (pl planner) planMaintenance(c quota.SetMaintenance) plan {
	t := pl.forest.trees[c.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
	}
	d := differ{tree: t.name, undo: t.undo()}
	d.add("", "maintenance", switchText(t.settings.Maintenance), switchText(c.On))
	p := plan{
		changes: d.changes,
		undo:    []quota.TreeUndo{d.undo},
		commit: func() {
			pl.forest.markChanged(t)
			t.settings.Maintenance = c.On
			pl.requeue(map[string]bool{t.name: true})
		},
		effects: func() *quota.Effects { return &quota.Effects{} },
	}
	if !c.On {
		p.over = t.over(quota.MaxOver)
	}
	return p
}
