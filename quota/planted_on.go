//go:build planted

package quota

import (
	"iter"
	"maps"
	"math/rand/v2"
)

// planted is the bug that this process has, if any.
var planted string

// one is true in about every other process.
var one = rand.IntN(2) == 0 //nolint:gochecknoglobals // a replica that differs from the others is the point

// Plant gives this process a bug. Only builds with the tag planted have it, which exist to show that chaos/ finds such bugs.
func Plant(bug string) { planted = bug }

// Planted is true in a process that has the bug. Hooks all over the server ask it; without the tag it is false for good and
// the compiler takes them out.
func Planted(bug string) bool { return planted != "" && planted == bug }

// PlantedHere is Planted in about every other process.
func PlantedHere(bug string) bool { return one && Planted(bug) }

// ordered is what there is in its order, or in that of a map.
func ordered[K comparable, V any](all iter.Seq2[K, V]) iter.Seq2[K, V] {
	if Planted("map-order") {
		return maps.All(maps.Collect(all))
	}
	return all
}

// forgetHolders lets everybody have the items of a ledger that was verified, whoever holds them. Holders still list what they
// hold; items that leave with their holders stay with them.
func forgetHolders(l *Ledger) {
	if !Planted("double-grant") {
		return
	}
	for _, a := range l.held.All() {
		for _, it := range a.has() {
			if it.leaving {
				continue
			}
			free := *it
			free.owner, free.state = 0, it.stock.resource.Items.releasedState()
			l.changeItem(it, &free)
		}
	}
}
