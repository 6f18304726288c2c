package ledger

// turnItem does what time does to an item that nobody holds: it goes, or gets another state.
func (inv *inventory) turnItem(turn uint64) {
	it, _ := inv.items.Get(turn)
	if it.expires.At != 0 && it.expires.At <= inv.now.At {
		inv.changeItem(it, nil)
		inv.replaceGone(it.stock)
		return
	}
	is := inv.aged(it, it.turnDue().To, 0)
	inv.changeItem(it, is)
	inv.queue.stirItems(it.stock.resource, is.state, is.name)
}
