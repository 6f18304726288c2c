package ledger

// SetLevel tells the ledger the feature level of the cluster. It is called between two commands, at the same place of the
// log on every replica. The level is not part of an image: its owner remembers it and calls SetLevel after a restore.
func (l *Ledger) SetLevel(level uint32) { l.level = level }

// Level is what SetLevel was told last; the newest in a new ledger.
func (l *Ledger) Level() uint32 { return l.level }
