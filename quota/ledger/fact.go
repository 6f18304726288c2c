package ledger

// fact notes a change of state for those who watch.
func (l *Ledger) fact(kind FactKind, a *Allocation) {
	l.facts = append(l.facts, Fact{Kind: kind, Allocation: a})
}

// TakeFacts answers what the last command has done to allocations, in order, and forgets it.
func (l *Ledger) TakeFacts() []Fact {
	facts := l.facts
	l.facts = nil
	return facts
}
