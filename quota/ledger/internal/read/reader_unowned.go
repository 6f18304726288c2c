package read

import "github.com/quorate/quorate/quota/internal/rankqueue"

// CountUnowned counts held allocations, reservations and waiting requests without an owner. It visits all of them, up
// to a bound; more is true if there were more than it looked at.
func (r Reader) CountUnowned(most int) (count int, more bool) {
	looked := 0
	for _, a := range r.state.Allocations.Held.From(0) {
		if looked++; looked > most {
			return count, true
		}
		if a.Owner == "" {
			count++
		}
	}
	for w := range r.state.Queue.All.From(rankqueue.First()) {
		if looked++; looked > most {
			return count, true
		}
		if w.Record.Owner == "" && !w.IsResize() {
			count++
		}
	}
	return count, false
}
