package faults

import (
	"context"
	"math/rand/v2"
	"time"
)

func clockKinds() []Kind {
	return []Kind{
		{
			Name:        "clock",
			Description: "the wall clock of one node jumps by a second to a year either way, and back again",
			missingNeed: needsClock, minHold: 2 * time.Second, maxHold: 10 * time.Second, newFault: turnClock(roleAny),
		},
		{
			Name: "clock-leader", Description: "the wall clock of the leader jumps in the same way",
			missingNeed: needsClock, minHold: 2 * time.Second, maxHold: 10 * time.Second,
			newFault: turnClock(roleLeader),
		},
	}
}

// turnClock sets the wall clock of a node. It does not reserve the node, so other faults may hit it at the same time.
// Only the clocks of a minority are wrong at one time: civil time may follow a majority.
func turnClock(role nodeRole) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		const day = 24 * time.Hour
		spans := []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, day, 365 * day}
		offset := spans[r.IntN(len(spans))]
		if r.IntN(2) == 0 {
			offset = -offset
		}
		p, node := chooseNode(r, role), 0
		return func(ctx context.Context, t *Target) error {
				if node = t.Leader(ctx); node < 0 || role == roleAny {
					node = p.dice % len(t.Nodes)
				}
				if !t.reserveClock(node) {
					return errNoFreeNode
				}
				t.Note(node, "wall clock set off by %v", offset)
				return t.Nodes[node].Clock.SetOffset(offset)
			}, func(_ context.Context, t *Target) error {
				defer t.releaseClock(node)
				t.Note(node, "wall clock corrected")
				return t.Nodes[node].Clock.SetOffset(0)
			}
	}
}

// reserveClock returns false if the clock of the node is wrong already, or those of as many nodes as may be.
func (t *Target) reserveClock(node int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrongClocks[node] || len(t.wrongClocks) >= (len(t.Nodes)-1)/2 {
		return false
	}
	t.wrongClocks[node] = true
	return true
}

func (t *Target) releaseClock(node int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wrongClocks, node)
}
