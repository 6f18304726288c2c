package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestOddButTrueHistoriesPass: what a correct cluster may do is no violation, however it looks.
func TestOddButTrueHistoriesPass(t *testing.T) {
	renewed := func(from, to int64, index uint64, expires int64) history.Op {
		return history.Op{Kind: history.Renew, ID: "x", Index: index, Fence: 1, State: history.Held, Expires: expires}
	}
	tests := map[string]*script{
		"as it should be": tree().grant(2, 3, "x", "a", 6, 2, 1).deny(4, 5, "y", "a", 1, because("a", 6, 6, 1)).release(6, 7, "x", 3, 1).
			grant(8, 9, "z", "a", 6, 4, 2).read(10, 11, 4, 6, 6, 0).final(9, usage(6, 6, 0), holds("z", "a", 6, 2)).digests("aa", "aa"),
		"a grant whose first answer was lost": tree().lost(2, 5, history.Allocate, "x", "a", 6).again(6, 7, "x", "a", 6, 5, 1).final(9, usage(6, 6, 0), holds("x", "a", 6, 1)),
		"a grant that was used by another before its retry": tree().lost(2, 5, history.Allocate, "x", "a", 6).deny(3, 4, "y", "a", 6, because("a", 6, 6, 6), because("", 10, 6, 6)).
			again(6, 7, "x", "a", 6, 5, 1).final(9, usage(6, 6, 0), holds("x", "a", 6, 1)),
		"a release whose first answer was lost": tree().grant(2, 3, "x", "a", 6, 2, 1).lost(4, 8, history.Release, "x", "", 0).grant(5, 6, "y", "a", 6, 4, 2).
			release(9, 10, "x", 5, 1).repeated().final(9, usage(6, 6, 0), holds("y", "a", 6, 2)),
		"a release that nobody was ever told": tree().grant(2, 3, "x", "a", 6, 2, 1).lost(4, 8, history.Release, "x", "", 0).grant(9, 10, "y", "a", 6, 7, 2).
			final(9, usage(6, 6, 0), holds("y", "a", 6, 2)),
		"the same without final states": tree().grant(2, 3, "x", "a", 6, 2, 1).lost(4, 8, history.Release, "x", "", 0).grant(9, 10, "y", "a", 6, 7, 2),
		"a request that never arrived":  tree().lost(2, 5, history.Allocate, "x", "a", 6).grant(6, 7, "y", "a", 6, 3, 1).final(9, usage(6, 6, 0), holds("y", "a", 6, 1)),
		"a request and its release, both lost, and done": tree().lost(2, 5, history.Allocate, "x", "a", 6).lost(6, 7, history.Release, "x", "", 0).
			deny(4, 6, "y", "a", 1, because("a", 6, 6, 1)).final(9, usage(0, 0, 0)),
		"released and granted in one entry": tree().grant(2, 3, "x", "a", 6, 2, 1).release(4, 7, "x", 5, 1).grant(4, 7, "y", "a", 6, 5, 2),
		"use above a limit that was lowered": tree().grant(2, 3, "x", "a", 6, 2, 1).
			op(4, 5, history.Op{Kind: history.Configure, ID: "c", Index: 3, Limits: []history.Limit{limit("a", 2)}}).
			op(6, 7, history.Op{
				Kind: history.ReadUsage, Index: 4, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
				Usage: []history.Usage{{Tree: "t", Node: "a", Resource: "units", Used: 6, Limit: 2, Over: 4}},
			}),
		"a limit of which nobody knows whether it was raised": tree().
			op(2, 3, history.Op{Kind: history.Configure, ID: "c", Outcome: history.Unknown, Limits: []history.Limit{limit("a", 9)}}).grant(4, 5, "x", "a", 8, 3, 1),
		"a stale read of the past": tree().grant(2, 3, "x", "a", 2, 2, 1).read(4, 5, 1, 0, 0, 0).stale(),
		"a list taken while the state moves": tree().grant(2, 3, "x", "a", 2, 2, 1).op(3, 8, history.Op{
			Kind: history.ListHeld, Index: 3, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}}, Records: []history.Record{holds("x", "a", 2, 1), holds("y", "a", 2, 2)},
		}).grant(4, 5, "y", "a", 2, 3, 2).release(6, 7, "x", 4, 1),
		"a lease that expired in time": tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).change(6, "ENDED", "x", history.Expired, 4, 1, 1, 2000),
		"a lease renewed at the last moment": tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).op(3, 4, renewed(3, 4, 3, 2400)).
			change(9, "ENDED", "x", history.Expired, 4, 1, 1, 2401),
		"a renewal that came too late": tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			op(5, 6, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}),
		"a renewal whose answer was lost": tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).op(3, 6, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Unknown}).
			op(7, 8, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}),
		"an outage in which a lease gets its time back":  tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).op(90, 91, renewed(90, 91, 3, 2900)),
		"a silent lease that is not there in the end":    tree().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).final(9, usage(0, 0, 0)),
		"granted from the queue by the order of arrival": queue().wait(2, 3, "first", 0, 2).wait(4, 5, "second", 0, 3).taken(6, 7, "first", 0, 9, 1).taken(8, 9, "second", 0, 11, 2),
		"two who came at once":                           queue().wait(2, 5, "a", 0, 2).wait(2, 5, "b", 0, 3).taken(6, 7, "b", 0, 9, 1).taken(8, 9, "a", 0, 11, 2),
		"one who left the queue":                         queue().wait(2, 3, "first", 0, 2).wait(4, 5, "second", 0, 3).op(5, 6, history.Op{Kind: history.Cancel, ID: "first", Index: 4, State: history.Cancelled}).taken(6, 7, "second", 0, 9, 1),
		"fences that skip":                               tree().grant(2, 3, "x", "a", 1, 2, 4).grant(4, 5, "y", "a", 1, 9, 40),
		"a node that came back from a snapshot":          tree().grant(2, 3, "x", "a", 2, 2, 1).read(4, 5, 2, 2, 2, 0).stale().read(6, 7, 1, 0, 0, 0).stale().read(8, 9, 2, 2, 2, 0),
		"an item that changes hands in one entry": item().op(2, 3, car("x", "ant", 2, 1)).
			op(4, 7, history.Op{Kind: history.Release, ID: "x", Index: 3, Fence: 1, State: history.Released}).op(4, 7, car("y", "ant", 3, 2)),
		"an item whose holder fell silent": item().op(2, 3, withTTL(car("x", "ant", 2, 1), 1000)).op(8, 9, car("y", "ant", 3, 2)),
		"a van that was not updated":       item().van(2, 3, history.BoskosAcquire, "ann", "v1").van(11, 12, history.BoskosAcquire, "bob", "v1"),
		"a van given back and taken":       item().van(2, 3, history.BoskosAcquire, "ann", "v1").van(4, 7, history.BoskosRelease, "ann", "v1").van(5, 6, history.BoskosAcquire, "bob", "v1"),
		"somebody waits who does not fit":  tree().grant(2, 3, "x", "a", 6, 2, 1).final(9, usage(6, 6, 0), holds("x", "a", 6, 1)).waits("y", 1),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.want(t, "", "") })
	}
}

func withTTL(o history.Op, ttl int64) history.Op {
	o.TTL = ttl
	return o
}
