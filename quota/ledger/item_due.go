package ledger

// turnItem does what time does to an item that nobody holds: it goes, or gets another state.
func (l *Ledger) turnItem(turn uint64) {
	it, _ := l.items.Get(turn)
	if it.expires.At != 0 && it.expires.At <= l.now.At {
		l.changeItem(it, nil)
		l.replaceGone(it.stock)
		return
	}
	is := l.aged(it, it.turnDue().To, 0)
	l.changeItem(it, is)
	l.stirItems(it.stock.resource, is.state, is.name)
}
