package quota

// recount rebuilds what is counted for users and groups from the held claims, after nodes have moved.
func (t *tree) recount() {}

// reseat settles who sits where after any change of a tree.
func (l *Ledger) reseat(*tree) {}

// borrowersOutside are breaches where a draft would no longer let claims be counted above their nodes.
func (l *Ledger) borrowersOutside(*succession) []Breach { return nil }
