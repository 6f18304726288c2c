package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestPlantedFaultsAreFound: a checker that finds nothing proves nothing.
func TestPlantedFaultsAreFound(t *testing.T) {
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"over the limit of a node": {tree().grant(2, 3, "x", "a", 4, 2, 1).grant(4, 5, "y", "a", 4, 3, 2).again(6, 7, "x", "a", 4, 4, 1), "P1", "8 units are held at t:a"},
		"over the limit of a tree, by a grant that nobody was told": {
			tree().grant(2, 3, "x", "a", 5, 2, 1).lost(4, 5, history.Allocate, "y", "b", 6).final(9, usage(11, 5, 6), holds("x", "a", 5, 1), holds("y", "b", 6, 2)),
			"P1", "t:",
		},
		"a limit that is lower": {
			tree().op(2, 3, history.Op{Kind: history.Configure, ID: "c", Index: 2, Limits: []history.Limit{limit("a", 2)}}).grant(4, 5, "x", "a", 3, 3, 1),
			"P1", "at most 2",
		},
		"a read above the limit": {tree().read(2, 3, 2, 11, 6, 5), "P1", "uses 11 of 10"},
		"one id, two grants":     {tree().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "x", "a", 1, 3, 2), "P2", "under fence 1 and under 2"},
		"one fence, two ids":     {tree().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "y", "a", 1, 3, 1), "P2", "fence 1 was given"},
		"granted anew":           {tree().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "x", "a", 1, 3, 1), "P2", "as if it was new"},
		"held after its end":     {tree().grant(2, 3, "x", "a", 1, 2, 1).release(4, 5, "x", 3, 1).again(6, 7, "x", "a", 1, 4, 1), "P2", "had ended at index 3"},
		"a retry that is taken for another": {
			tree().grant(2, 3, "x", "a", 1, 2, 1).op(4, 5, history.Op{Kind: history.Allocate, ID: "x", Claims: claim("a", 1), Outcome: history.Refused, Reason: "ID_TAKEN"}),
			"P2", "refused as taken",
		},
		"a retry that is denied": {
			tree().grant(2, 3, "x", "a", 6, 2, 1).deny(4, 5, "x", "a", 6, because("a", 6, 6, 6)).again(6, 7, "x", "a", 6, 4, 1), "P2", "denied when it was repeated",
		},
		"charged twice":                        {tree().grant(2, 3, "x", "a", 2, 2, 1).final(9, usage(4, 4, 0), holds("x", "a", 2, 1)), "P2", "adds up to 2"},
		"lost from the final state":            {tree().grant(2, 3, "x", "a", 2, 2, 1).final(9, usage(0, 0, 0)), "P3", "is not held on n1"},
		"a lost release":                       {tree().grant(2, 3, "x", "a", 2, 2, 1).release(4, 5, "x", 3, 1).final(9, usage(2, 2, 0), holds("x", "a", 2, 1)), "P3", "had ended at index 3"},
		"a log that was cut":                   {tree().grant(2, 3, "x", "a", 2, 7, 1).final(6, usage(2, 2, 0), holds("x", "a", 2, 1)), "P3", "ends at index 6"},
		"a read that does not know it":         {tree().grant(2, 3, "x", "a", 2, 2, 1).op(4, 5, history.Op{Kind: history.ReadAllocation, ID: "x", Outcome: history.Refused, Reason: "NOT_FOUND"}), "P3", "does not know it"},
		"a list without it":                    {tree().grant(2, 3, "x", "a", 2, 2, 1).again(4, 5, "x", "a", 2, 9, 1).op(6, 7, history.Op{Kind: history.ListHeld, Index: 5, Stale: true, MarkedStale: true, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}}}), "P3", "is not in the list"},
		"a watch that missed it":               {tree().change(1, history.WatchBegins, "", "", 1, 0, 0, 0).grant(2, 3, "x", "a", 2, 2, 1).change(4, "GRANTED", "y", history.Held, 3, 1, 2, 0).change(5, "GRANTED", "z", history.Held, 4, 1, 3, 0), "P3", "did not see it"},
		"expired early by ledger time":         {tree().lease(2, 3, "x", "a", 1, 2, 1, 5000, 9000).change(4, "ENDED", "x", history.Expired, 3, 1, 1, 8999), "P4", "was to last until 9000"},
		"expired early by the holder's clock":  {tree().lease(2, 3, "x", "a", 1, 2, 1, 5000, 9000).op(6, 7, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}), "P4", "as its holder counts"},
		"expired early after a renewal":        {tree().lease(2, 3, "x", "a", 1, 2, 1, 2000, 3000).op(4, 5, history.Op{Kind: history.Renew, ID: "x", Index: 3, Fence: 1, State: history.Held, Expires: 5000}).change(6, "ENDED", "x", history.Expired, 4, 1, 1, 4000), "P4", "was to last until 5000"},
		"a fence that went back in the log":    {tree().grant(2, 9, "x", "a", 1, 2, 9).grant(2, 9, "y", "a", 1, 3, 8), "P5", "had fence"},
		"a fence that went back in time":       {tree().lost(1, 2, history.Allocate, "x", "a", 1).again(2, 3, "x", "a", 1, 3, 9).lost(4, 5, history.Allocate, "y", "a", 1).again(6, 7, "y", "a", 1, 5, 8), "P5", "before it was asked for"},
		"half of a request":                    {tree().op(2, 3, history.Op{Kind: history.Allocate, ID: "x", Claims: append(claim("a", 1), claim("b", 1)...), Index: 2, Fence: 1, State: history.Held, Granted: claim("a", 1)}), "P6", "another number of claims"},
		"less than was asked for":              {tree().op(2, 3, history.Op{Kind: history.Allocate, ID: "x", Claims: claim("a", 2), Index: 2, Fence: 1, State: history.Held, Granted: claim("a", 1)}), "P6", "another amount"},
		"half of a configuration":              {tree().op(2, 3, history.Op{Kind: history.Configure, ID: "c", Index: 2, Limits: []history.Limit{limit("a", 1), limit("b", 1)}}).op(4, 5, history.Op{Kind: history.ReadLimits, Index: 2, ServedBy: "n1", Limits: []history.Limit{limit("a", 1), limit("b", 6)}}), "P6", "no change set together"},
		"a stale read that should not be one":  {tree().grant(2, 3, "x", "a", 2, 5, 1).read(4, 5, 4, 0, 0, 0), "P7", "index 5 had been answered"},
		"a write in the past":                  {tree().grant(2, 3, "x", "a", 2, 5, 1).grant(4, 5, "y", "a", 2, 4, 2), "P7", "index 5 had been answered"},
		"a denial in the past":                 {tree().grant(2, 3, "x", "a", 6, 5, 1).deny(4, 5, "y", "a", 6, because("a", 6, 6, 6)).index(4), "P7", "was denied at index 4"},
		"a stale read that hides it":           {tree().op(2, 3, history.Op{Kind: history.ReadUsage, Stale: true, Index: 1, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}}}), "P7", "does not say so"},
		"a read behind what it insisted on":    {tree().op(2, 3, history.Op{Kind: history.ReadUsage, Stale: true, MarkedStale: true, MinIndex: 4, Index: 3, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}}}), "P7", "asked for 4"},
		"a watch that goes back":               {tree().change(1, history.WatchBegins, "", "", 1, 0, 0, 0).change(2, "GRANTED", "x", history.Held, 5, 2, 1, 0).change(3, "GRANTED", "y", history.Held, 5, 1, 2, 0), "P7", "5.1 after 5.2"},
		"overtaken":                            {queue().wait(2, 3, "first", 0, 2).wait(4, 5, "second", 0, 3).taken(6, 7, "second", 0, 9, 1).taken(8, 9, "first", 0, 11, 2), "P8", "second (priority 0)"},
		"a less important one first":           {queue().wait(2, 3, "high", 2, 2).wait(2, 3, "low", 1, 2).taken(6, 7, "low", 1, 9, 1).taken(8, 9, "high", 2, 11, 2), "P8", "low (priority 1)"},
		"two nodes, two states":                {tree().grant(2, 3, "x", "a", 2, 2, 1).final(9, usage(2, 2, 0), holds("x", "a", 2, 1)).final(9, usage(2, 2, 0), holds("x", "a", 2, 7)), "P9", "what is held"},
		"two nodes, two digests":               {tree().final(9, usage(0, 0, 0)).digests("aa", "ab"), "P9", "n2 has digest ab at index 10, and n1 has aa"},
		"one index, two answers":               {tree().read(2, 3, 4, 0, 0, 0).read(2, 3, 4, 1, 1, 0), "P9", "differ"},
		"a denial without a reason":            {tree().deny(2, 3, "x", "a", 9), "P10", "no limit is named"},
		"a denial that does not add up":        {tree().deny(2, 3, "x", "a", 9, history.Violation{Tree: "t", Node: "a", Resource: "units", Limit: 6, Used: 0, Requested: 9, Missing: 1}), "P10", "does not add up"},
		"a denial that names one limit of two": {tree().grant(2, 3, "x", "a", 6, 2, 1).deny(4, 5, "y", "a", 5, because("a", 6, 6, 5)).read(6, 7, 3, 6, 6, 0), "P10", "reasons of all denials"},
		"a denial of what fits":                {tree().deny(2, 3, "x", "a", 6, because("a", 6, 1, 6)), "linearizable", "no order"},
		"a read of what is not there":          {tree().grant(2, 3, "x", "a", 2, 2, 1).read(4, 5, 2, 3, 3, 0), "linearizable", "no order"},
		"a stale read of what never was":       {tree().grant(2, 3, "x", "a", 2, 2, 1).release(4, 5, "x", 3, 1).read(6, 7, 2, 0, 0, 0).stale(), "linearizable", "no order"},
		"somebody who fits waits":              {tree().final(9, usage(0, 0, 0)).waits("x", 1), "live", "the first in its line and fits"},
		"an item with two holders":             {item().op(2, 3, car("x", "ant", 2, 1)).op(4, 5, car("y", "ant", 3, 2)).op(6, 7, history.Op{Kind: history.Release, ID: "x", Index: 4, Fence: 1, State: history.Released}), "P2", "held i:car/ant"},
		"an item that is given too early":      {item().op(2, 3, car("x", "ant", 2, 1)).op(4, 5, car("y", "ant", 3, 2)), "linearizable", "i:car/ant"},
		"a van with two drivers":               {item().van(2, 3, history.BoskosAcquire, "ann", "v1").van(4, 5, history.BoskosAcquire, "bob", "v1"), "P2", "boskos:van/v1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.want(t, test.promise, test.words) })
	}
}

func queue() *script { return tree() }

func (s *script) wait(from, to int64, id string, priority int64, index uint64) *script {
	return s.op(from, to, history.Op{
		Kind: history.Allocate, Mode: history.Wait, ID: id, Claims: claim("a", 1), Priority: priority, Index: index, State: history.Waiting,
	})
}

func (s *script) taken(from, to int64, id string, priority int64, index, fence uint64) *script {
	return s.op(from, to, history.Op{
		Kind: history.Allocate, Mode: history.Wait, ID: id, Claims: claim("a", 1), Priority: priority, Index: index, Fence: fence, State: history.Held,
		Granted: claim("a", 1), Repeated: true,
	})
}

// waits puts a request into the queue of the last final state.
func (s *script) waits(id string, place int64) *script {
	last := &s.finals.States[len(s.finals.States)-1]
	last.Waiting = append(last.Waiting, history.Record{ID: id, State: history.Waiting, Claims: claim("a", 1), Place: place})
	return s
}

func item() *script {
	return new(script).op(0, 1, history.Op{Kind: history.Configure, ID: "setup", Index: 1, Limits: []history.Limit{{Tree: "i", Resource: "units", Amount: -1}}})
}

func car(id, name string, index, fence uint64) history.Op {
	return history.Op{
		Kind: history.Allocate, ID: id, Claims: []history.Claim{{Tree: "i", Pick: "car"}}, Index: index, Fence: fence, State: history.Held,
		Granted: []history.Claim{{Tree: "i", Items: []string{"car/" + name}}},
	}
}

func (s *script) van(from, to int64, kind history.Kind, who, name string) *script {
	return s.op(from, to, history.Op{Kind: kind, ID: who, TTL: 4000, Claims: []history.Claim{{Tree: "boskos", Items: []string{"van/" + name}}}})
}
