package quota

// ChangesQuery asks what may have changed in a ledger.
type ChangesQuery struct {
	// After is a log index: changes by later entries are wanted.
	After uint64
	// Trees limits the answer to these trees, which need not exist; empty for all.
	Trees []string
}

// Changes is what may have changed in a ledger. It can name what has not, and never leaves out what has.
type Changes struct {
	// Everything is true if the ledger cannot say what has changed. Then nothing else is set.
	Everything bool
	// Configuration is true if the configuration of any tree, or access, has changed.
	Configuration bool
	// LimitRequests is true if a request for limits was made, approved or ended.
	LimitRequests bool
	// Trees are by name, at most MaxChangedTrees with together MaxChangedNames nodes and itemized resources.
	Trees []TreeChanges
}

// TreeChanges is what may have changed in one tree.
type TreeChanges struct {
	Tree string
	// Nodes are those of which the usage, the limits in force, the holders or the waiting requests have changed, and all
	// nodes above them, by path; at most MaxChangedNodes. For a node that was removed, the node above it is named.
	Nodes []string
	// Many is true if any node and any item may have changed. Then Nodes and Items are empty.
	Many bool
	// Queue is true if a request has begun or ceased to wait, or waits in another queue.
	Queue bool
	// Items are the itemized resources of which an item has changed, by name.
	Items []string
}

// IsEmpty is true if nothing has changed.
func (c *Changes) IsEmpty() bool {
	return !c.Everything && !c.Configuration && !c.LimitRequests && len(c.Trees) == 0
}

// IsEmpty is true if nothing has changed in the tree.
func (c *TreeChanges) IsEmpty() bool {
	return !c.Many && !c.Queue && len(c.Nodes) == 0 && len(c.Items) == 0
}
