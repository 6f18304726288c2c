package browsertest

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// TestChangesDoNotRepeatCalls counts the calls of an open page while what it shows changes often: one stream tells of the
// changes however many there are, and what is read again is read at most four times a second.
func TestChangesDoNotRepeatCalls(t *testing.T) {
	s := startServers(t, 1)[0]
	fill(t, s)
	b := openTab(t, s.URL()+"/ui/")
	begun := time.Now()
	for i := range 20 {
		id := fmt.Sprintf("often-%d", i)
		s.Run(t, "allocate", "--id", id, "--at", "cern:atlas", "--amount", "cores=1")
		s.Run(t, "release", id)
		time.Sleep(100 * time.Millisecond)
	}
	b.mu.Lock()
	calls := maps.Clone(b.calls)
	b.mu.Unlock()
	if calls["WatchChanges"] != 1 {
		t.Errorf("the page opened %d streams in %v, not one", calls["WatchChanges"], time.Since(begun))
	}
	trees, most := 8, 4*int(time.Since(begun).Seconds()+2)
	if calls["GetUsage"] < 2 || calls["GetUsage"] > trees*most {
		t.Errorf("the page read usage %d times in %v", calls["GetUsage"], time.Since(begun))
	}
}
