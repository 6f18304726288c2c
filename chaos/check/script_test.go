package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
)

// A history is written by hand here, one call after the other. Times are half seconds.
const second = int64(time.Second)

type script struct {
	ops    []history.Op
	finals check.Finals
}

// addOp adds a call; from and to are in half seconds.
func (s *script) addOp(from, to int64, o history.Op) *script {
	o.Number, o.Call, o.Return = int64(len(s.ops))+1, from*second/2, to*second/2
	if o.Outcome == "" {
		o.Outcome = history.OK
	}
	if o.Workload == "" {
		o.Workload = "hand"
	}
	s.ops = append(s.ops, o)
	return s
}

func claimOf(node string, amount int64) []history.Claim {
	return []history.Claim{{Tree: "t", Node: node, Amounts: map[string]int64{"units": amount}}}
}

func limitOf(node string, amount int64) history.Limit {
	return history.Limit{Tree: "t", Node: node, Resource: "units", Amount: amount}
}

func treeScript() *script {
	return new(script).addOp(0, 1, history.Op{
		Kind: history.Configure, ID: "setup", Index: 1, Limits: []history.Limit{
			limitOf("", 10), limitOf("a", 6),
			limitOf("b", 6),
		},
	})
}

func (s *script) grant(from, to int64, id, node string, amount int64, index, fence uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Allocate, ID: id, Claims: claimOf(node, amount), Index: index, Fence: fence, State: history.Held,
		Granted: claimOf(node, amount),
	})
}

func (s *script) regrant(from, to int64, id, node string, amount int64, index, fence uint64) *script {
	s.grant(from, to, id, node, amount, index, fence)
	s.ops[len(s.ops)-1].Repeated = true
	return s
}

func (s *script) lease(from, to int64, id, node string, amount int64, index, fence uint64, ttl, expires int64) *script {
	s.grant(from, to, id, node, amount, index, fence)
	s.ops[len(s.ops)-1].TTL, s.ops[len(s.ops)-1].Expires = ttl, expires
	return s
}

func (s *script) unanswered(from, to int64, kind history.Kind, id, node string, amount int64) *script {
	o := history.Op{Kind: kind, ID: id, Outcome: history.Unknown}
	if kind == history.Allocate {
		o.Claims = claimOf(node, amount)
	}
	return s.addOp(from, to, o)
}

func (s *script) release(from, to int64, id string, index, fence uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Release, ID: id, Index: index, Fence: fence,
		State: history.Released,
	})
}

func (s *script) markRepeated() *script {
	s.ops[len(s.ops)-1].Repeated = true
	return s
}

func (s *script) deny(from, to int64, id, node string, amount int64, why ...history.Violation) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Allocate, ID: id, Claims: claimOf(node, amount), Outcome: history.Refused, Reason: history.Denied,
		Violations: why,
	})
}

func (s *script) setIndex(i uint64) *script {
	s.ops[len(s.ops)-1].Index = i
	return s
}

func violationAt(node string, limit, used, requested int64) history.Violation {
	return history.Violation{
		Tree: "t", Node: node, Resource: "units", Limit: limit, Used: used, Requested: requested,
		Missing: used + requested - limit,
	}
}

func (s *script) readUsage(from, to int64, index uint64, root, a, b int64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadUsage, Index: index, ServedBy: "n1",
		Claims: []history.Claim{{Tree: "t"}}, Usage: usageOf(root, a, b),
	})
}

func (s *script) markStale() *script {
	o := &s.ops[len(s.ops)-1]
	o.Stale, o.MarkedStale = true, true
	return s
}

func usageOf(root, a, b int64) []history.Usage {
	return []history.Usage{
		{Tree: "t", Resource: "units", Used: root, Limit: 10},
		{Tree: "t", Node: "a", Resource: "units", Used: a, Limit: 6},
		{Tree: "t", Node: "b", Resource: "units", Used: b, Limit: 6},
	}
}

func (s *script) addChange(
	from int64, what, id, state string, index uint64, within uint32, fence uint64, ledger int64,
) *script {
	return s.addOp(from, from, history.Op{
		Kind: history.Change, Session: 1, Change: what, ID: id, State: state, Index: index, Position: within,
		Fence: fence, Ledger: ledger,
	})
}

func (s *script) addFinal(index uint64, u []history.Usage, held ...history.Record) *script {
	s.finals.States = append(s.finals.States, check.State{
		Node:  "n" + string(rune('1'+len(s.finals.States))),
		Index: index, Usage: u, Held: held,
	})
	return s
}

// addDigests adds the digests of all nodes, one index after the final states.
func (s *script) addDigests(all ...string) *script {
	for i, digest := range all {
		s.finals.Digests = append(s.finals.Digests, check.Digest{
			Node:  "n" + string(rune('1'+i)),
			Index: s.finals.States[0].Index + 1, Digest: digest,
		})
	}
	return s
}

func heldRecord(id, node string, amount int64, fence uint64) history.Record {
	return history.Record{ID: id, State: history.Held, Fence: fence, Claims: claimOf(node, amount)}
}

// wantBroken expects a promise broken with a message that contains some words, or no promise if it is empty.
func (s *script) wantBroken(t *testing.T, promise, words string) {
	t.Helper()
	verdicts := check.JudgeWith(history.History{Ops: s.ops}, s.finals, check.Options{Timeout: 20 * time.Second})
	err := verdicts.Err()
	if promise == "" {
		if err != nil {
			t.Errorf("this history is valid, but: %v", err)
		}
		return
	}
	v := verdicts.Of(promise)
	if v.Status() != "broken" || !strings.Contains(strings.Join(v.Messages, "\n"), words) {
		t.Errorf("%s is %s, want it broken with %q; in all: %v", promise, v.Status(), words, err)
	}
}
