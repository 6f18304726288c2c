package quota

// planMaintenance checks a change of a tree's maintenance. Leaving it answers everything that is over a limit.
func (l *Ledger) planMaintenance(c SetMaintenance) plan {
	t := l.trees[c.Tree]
	if t == nil {
		return refusedPlan(refuse(NotFound, "tree", "there is no tree %q", clip(c.Tree)))
	}
	d := differ{tree: t.name, undo: t.undo()}
	d.add("", "maintenance", switchText(t.settings.Maintenance), switchText(c.On))
	p := plan{
		changes: d.changes,
		undo:    []TreeUndo{d.undo},
		commit: func() {
			l.markChanged(t)
			t.settings.Maintenance = c.On
			l.requeue(map[string]bool{t.name: true})
		},
		effects: func() *Effects { return &Effects{} },
	}
	if !c.On {
		p.over = t.over(MaxOver)
	}
	return p
}
