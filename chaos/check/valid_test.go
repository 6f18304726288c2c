package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestValidHistoriesPass: no check reports what a correct cluster may do, however odd it looks.
func TestValidHistoriesPass(t *testing.T) {
	renewed := func(from, to int64, index uint64, expires int64) history.Op {
		return history.Op{Kind: history.Renew, ID: "x", Index: index, Fence: 1, State: history.Held, Expires: expires}
	}
	tests := map[string]*script{
		"as it should be": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			deny(4, 5, "y", "a", 1, violationAt("a", 6, 6, 1)).release(6, 7, "x", 3, 1).
			grant(8, 9, "z", "a", 6, 4, 2).readUsage(10, 11, 4, 6, 6, 0).
			addFinal(9, usageOf(6, 6, 0), heldRecord("z", "a", 6, 2)).addDigests("aa", "aa"),
		"a grant whose first answer was lost": treeScript().unanswered(2, 5, history.Allocate, "x", "a", 6).
			regrant(6, 7, "x", "a", 6, 5, 1).addFinal(9, usageOf(6, 6, 0), heldRecord("x", "a", 6, 1)),
		"a grant that was used by another before its retry": treeScript().
			unanswered(2, 5, history.Allocate, "x", "a", 6).
			deny(3, 4, "y", "a", 6, violationAt("a", 6, 6, 6), violationAt("", 10, 6, 6)).
			regrant(6, 7, "x", "a", 6, 5, 1).addFinal(9, usageOf(6, 6, 0), heldRecord("x", "a", 6, 1)),
		"a release whose first answer was lost": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			unanswered(4, 8, history.Release, "x", "", 0).grant(5, 6, "y", "a", 6, 4, 2).
			release(9, 10, "x", 5, 1).markRepeated().addFinal(9, usageOf(6, 6, 0), heldRecord("y", "a", 6, 2)),
		"a release that was never answered": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			unanswered(4, 8, history.Release, "x", "", 0).grant(9, 10, "y", "a", 6, 7, 2).
			addFinal(9, usageOf(6, 6, 0), heldRecord("y", "a", 6, 2)),
		"the same without final states": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			unanswered(4, 8, history.Release, "x", "", 0).grant(9, 10, "y", "a", 6, 7, 2),
		"a request that never arrived": treeScript().unanswered(2, 5, history.Allocate, "x", "a", 6).
			grant(6, 7, "y", "a", 6, 3, 1).addFinal(9, usageOf(6, 6, 0), heldRecord("y", "a", 6, 1)),
		"a request and its release, both lost, and done": treeScript().unanswered(2, 5, history.Allocate, "x", "a", 6).
			unanswered(6, 7, history.Release, "x", "", 0).
			deny(4, 6, "y", "a", 1, violationAt("a", 6, 6, 1)).addFinal(9, usageOf(0, 0, 0)),
		"released and granted in one entry": treeScript().grant(2, 3, "x", "a", 6, 2, 1).release(4, 7, "x", 5, 1).
			grant(4, 7, "y", "a", 6, 5, 2),
		"use above a limit that was lowered": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			addOp(4, 5, history.Op{
				Kind: history.Configure, ID: "c", Index: 3,
				Limits: []history.Limit{limitOf("a", 2)},
			}).
			addOp(6, 7, history.Op{
				Kind: history.ReadUsage, Index: 4, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
				Usage: []history.Usage{{Tree: "t", Node: "a", Resource: "units", Used: 6, Limit: 2, Over: 4}},
			}),
		"a limit that may have been raised": treeScript().
			addOp(2, 3, history.Op{
				Kind: history.Configure, ID: "c", Outcome: history.Unknown,
				Limits: []history.Limit{limitOf("a", 9)},
			}).grant(4, 5, "x", "a", 8, 3, 1),
		"use above an advisory limit": treeScript().setLimit(2, 3, 2, history.Unlimited).advises(4).
			grant(4, 5, "x", "a", 9, 3, 1).deny(6, 7, "y", "a", 2, violationAt("", 10, 9, 2)).setIndex(4),
		"a stale read of the past": treeScript().grant(2, 3, "x", "a", 2, 2, 1).readUsage(4, 5, 1, 0, 0, 0).markStale(),
		"a list taken while the state moves": treeScript().grant(2, 3, "x", "a", 2, 2, 1).addOp(3, 8, history.Op{
			Kind: history.ListHeld, Index: 3, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
			Records: []history.Record{heldRecord("x", "a", 2, 1), heldRecord("y", "a", 2, 2)},
		}).grant(4, 5, "y", "a", 2, 3, 2).release(6, 7, "x", 4, 1),
		"a lease that expired in time": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addChange(6, "ENDED", "x", history.Expired, 4, 1, 1, 2000),
		"a lease renewed at the last moment": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addOp(3, 4, renewed(3, 4, 3, 2400)).
			addChange(9, "ENDED", "x", history.Expired, 4, 1, 1, 2401),
		"a renewal that came too late": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addOp(5, 6, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}),
		"a renewal whose answer was lost": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addOp(3, 6, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Unknown}).
			addOp(7, 8, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}),
		"an outage in which a lease gets its time back": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addOp(90, 91, renewed(90, 91, 3, 2900)),
		"a silent lease that is not there in the end": treeScript().lease(2, 3, "x", "a", 1, 2, 1, 1000, 2000).
			addFinal(9, usageOf(0, 0, 0)),
		"granted from the queue by the order of arrival": queueScript().waitFor(2, 3, "first", 0, 2).
			waitFor(4, 5, "second", 0, 3).grantWaiting(6, 7, "first", 0, 9, 1).grantWaiting(8, 9, "second", 0, 11, 2),
		"two simultaneous requests": queueScript().waitFor(2, 5, "a", 0, 2).
			waitFor(2, 5, "b", 0, 3).grantWaiting(6, 7, "b", 0, 9, 1).grantWaiting(8, 9, "a", 0, 11, 2),
		"a request that left the queue": queueScript().waitFor(2, 3, "first", 0, 2).
			waitFor(4, 5, "second", 0, 3).addOp(5, 6, history.Op{
			Kind: history.Cancel, ID: "first", Index: 4,
			State: history.Cancelled,
		}).grantWaiting(6, 7, "second", 0, 9, 1),
		"fences that skip": treeScript().grant(2, 3, "x", "a", 1, 2, 4).
			grant(4, 5, "y", "a", 1, 9, 40),
		"a declared end": treeScript().declared(2, 3, 2, 2000).declared(4, 5, 3, 2000).markRepeated().atLedger(2000).
			addChange(6, "ENDED", "x", history.Expired, 4, 1, 1, 2001),
		"a declared end behind another command": treeScript().declared(2, 3, 2, 2000).
			declared(4, 5, 3, 2000).markRepeated().atLedger(5000).
			declared(5, 6, 4, 2000).markRepeated().atLedger(7000).
			addChange(7, "ENDED", "x", history.Expired, 5, 1, 1, 7000),
		"a node that came back from a snapshot": treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			readUsage(4, 5, 2, 2, 2, 0).markStale().readUsage(6, 7, 1, 0, 0, 0).markStale().readUsage(8, 9, 2, 2, 2, 0),
		"an item that changes hands in one entry": itemScript().addOp(2, 3, grantCar("x", "ant", 2, 1)).
			addOp(4, 7, history.Op{Kind: history.Release, ID: "x", Index: 3, Fence: 1, State: history.Released}).
			addOp(4, 7, grantCar("y", "ant", 3, 2)),
		"an item whose lease expired": itemScript().addOp(2, 3, withTTL(grantCar("x", "ant", 2, 1), 1000)).
			addOp(8, 9, grantCar("y", "ant", 3, 2)),
		"a van that was not updated": itemScript().boskosCall(2, 3, history.BoskosAcquire, "ann", "v1").
			boskosCall(11, 12, history.BoskosAcquire, "bob", "v1"),
		"a van given back and taken": itemScript().boskosCall(2, 3, history.BoskosAcquire, "ann", "v1").
			boskosCall(4, 7, history.BoskosRelease, "ann", "v1").boskosCall(5, 6, history.BoskosAcquire, "bob", "v1"),
		"a waiting request that does not fit": treeScript().grant(2, 3, "x", "a", 6, 2, 1).
			addFinal(9, usageOf(6, 6, 0), heldRecord("x", "a", 6, 1)).addWaiting("y", 1),
	}
	tests["a waiting request whose node is on hold"] = treeScript().addFinal(9, usageOf(0, 0, 0)).addWaiting("x", 1)
	tests["a waiting request whose node is on hold"].finals.States[0].OnHold = []history.Limit{
		{Tree: "t", Node: "a", Resource: history.OnHold},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// declared grants one unit at a to x, which declares to hold it for a second, until a ledger time.
func (s *script) declared(from, to int64, index uint64, end int64) *script {
	s.grant(from, to, "x", "a", 1, index, 1)
	o := &s.ops[len(s.ops)-1]
	o.For, o.Expires = 1000, end
	return s
}

func (s *script) atLedger(now int64) *script {
	s.ops[len(s.ops)-1].Ledger = now
	return s
}

func (s *script) advises(amount int64) *script {
	s.ops[len(s.ops)-1].Limits[0].Advises = amount
	return s
}

func withTTL(o history.Op, ttl int64) history.Op {
	o.TTL = ttl
	return o
}
