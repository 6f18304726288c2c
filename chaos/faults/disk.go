package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

func diskKinds() []Kind {
	hold := func(k Kind) Kind {
		k.needs, k.late, k.from, k.to = needsFaultyDisk, true, 3*time.Second, 10*time.Second
		return k
	}
	return []Kind{
		hold(Kind{Name: "slow-disk", Says: "each fsync of one node takes 20 to 600 ms longer", make: slowDisk}),
		hold(Kind{Name: "full-disk", Says: "the disk of one node is full", make: fullDisk}),
		hold(Kind{Name: "failing-fsync", Says: "each fsync of one node fails", make: brokenDisk("fsync fails", failSyncs)}),
		hold(Kind{Name: "torn-write", Says: "a write of one node ends in its middle, then the disk fails", make: brokenDisk("a write is torn", tear)}),
	}
}

// anyRole hits the leader every other time.
func anyRole(r *rand.Rand) pick {
	if r.IntN(2) == 0 {
		return draw(r, leader)
	}
	return draw(r, anyone)
}

func slowDisk(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	by := time.Duration(20+r.IntN(580)) * ms
	return single(anyRole(r), fmt.Sprintf("each fsync takes %v longer", by), "the disk is quick again",
		func(_ context.Context, t *Target, node int) error {
			t.Nodes[node].Disk.Slow(by)
			return nil
		}, func(_ context.Context, t *Target, node int) error {
			t.Nodes[node].Disk.Mend()
			return nil
		})
}

// roomPatience is how long a node whose disk was full may take to end because of it, once there is room again.
const roomPatience = 5 * time.Second

// fullDisk lets the node end, or go on if it can once there is room again.
func fullDisk(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	exits := 0
	return single(anyRole(r), "the disk is full", "there is room again",
		func(_ context.Context, t *Target, node int) error {
			exits = len(t.Nodes[node].Exits())
			return t.Nodes[node].Disk.Fill()
		}, func(ctx context.Context, t *Target, node int) error {
			defer func() { t.excuse(node, exits) }()
			n := t.Nodes[node]
			if err := n.Disk.Empty(); err != nil {
				return err
			}
			if !n.Wait(roomPatience) {
				if s, err := t.status(ctx, node); err == nil && s.GetProblem() == "" {
					return nil
				}
			}
			return t.again(node)
		})
}

// again kills a node if it runs, and starts it.
func (t *Target) again(node int) error {
	return errors.Join(t.Nodes[node].Kill(), t.start(node))
}

// brokenDisk is a disk that fails and is a good one after the node was started again, with what had been written.
func brokenDisk(what string, fail func(*Target, int)) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		exits := 0
		return single(anyRole(r), what, "started on a good disk",
			func(_ context.Context, t *Target, node int) error {
				exits = len(t.Nodes[node].Exits())
				fail(t, node)
				return nil
			}, func(_ context.Context, t *Target, node int) error {
				err := t.Nodes[node].Kill()
				t.excuse(node, exits)
				t.Nodes[node].Disk.Mend()
				return errors.Join(err, t.start(node))
			})
	}
}

func failSyncs(t *Target, node int) { t.Nodes[node].Disk.FailSyncs(true) }
func tear(t *Target, node int)      { t.Nodes[node].Disk.Tear() }
