package main

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	rawEntryBytes = 128
	mostInFlight  = 4096
	longestLoad   = time.Minute
)

type rawLoad struct {
	// Entries is how many entries were committed and applied.
	Entries int64
	// Seconds is how long that took.
	Seconds float64
	// Failure is the first error; empty if there was none.
	Failure string
}

// serveRawLoad commits entries of 128 bytes that the FSM ignores. The query has the number of entries in flight
// (inflight) and the duration (for).
func serveRawLoad(w http.ResponseWriter, request *http.Request, r applier) {
	inFlight, err := strconv.Atoi(request.FormValue("inflight"))
	if err != nil || inFlight < 1 || inFlight > mostInFlight {
		http.Error(w, "inflight must be 1 to "+strconv.Itoa(mostInFlight), http.StatusBadRequest)
		return
	}
	span, err := time.ParseDuration(request.FormValue("for"))
	if err != nil || span <= 0 || span > longestLoad {
		http.Error(w, "for must be a duration up to "+longestLoad.String(), http.StatusBadRequest)
		return
	}
	writeJSON(w, loadRaft(r, inFlight, span))
}

func loadRaft(r applier, inFlight int, span time.Duration) rawLoad {
	var result rawLoad
	var entries atomic.Int64
	var failure sync.Once
	var group sync.WaitGroup
	began := time.Now()
	for range inFlight {
		group.Go(func() {
			entry := make([]byte, rawEntryBytes) // raft keeps it, so no two in flight may share it with a writer
			for time.Since(began) < span {
				if err := r.Apply(entry, applyTimeout).Error(); err != nil {
					failure.Do(func() { result.Failure = err.Error() })
					return
				}
				entries.Add(1)
			}
		})
	}
	group.Wait()
	result.Entries, result.Seconds = entries.Load(), time.Since(began).Seconds()
	return result
}

var _ applier = (*raft.Raft)(nil)
