package quota

// recount rebuilds what is counted for users and groups from the held claims, after nodes have moved.
func (t *tree) recount() {}

// reseat settles the claims of a borrowing tree anew after nodes have moved or changed their rules.
func (l *Ledger) reseat(*tree) {}

// borrowersOutside says which claims a draft would leave where they may not be.
func (t *tree) borrowersOutside(*tree) []Breach { return nil }
