package quota

// planMove checks another path for a node.
func (l *Ledger) planMove(MoveNode) plan { return plan{} }

// planMaintenance checks a change of a tree's maintenance.
func (l *Ledger) planMaintenance(SetMaintenance) plan { return plan{} }

// planRollBack checks a way back to an earlier configuration.
func (l *Ledger) planRollBack(RollBack) plan { return plan{} }
