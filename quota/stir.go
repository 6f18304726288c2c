package quota

// stirItems is told that an item has become to be had in a state, or that there is room for making one.
func (l *Ledger) stirItems(*resource, string, string) {}
