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
		k.missingNeed, k.skipInUpgrade, k.minHold, k.maxHold = needsFaultyDisk, true, 3*time.Second, 10*time.Second
		return k
	}
	return []Kind{
		hold(Kind{
			Name: "slow-disk", Description: "each fsync of one node takes 20 to 600 ms longer",
			newFault: slowDisk,
		}),
		hanging(hold(Kind{
			Name: "hanging-disk", Description: "no fsync of one node returns; if it led, another one must lead meanwhile",
			newFault: hangDisk,
		})),
		hold(Kind{Name: "full-disk", Description: "the disk of one node is full", newFault: fullDisk}),
		hold(Kind{
			Name: "failing-fsync", Description: "each fsync of one node fails",
			newFault: brokenDisk("fsync fails", failSyncs),
		}),
		hold(Kind{
			Name: "torn-write", Description: "one write of a node is cut short, then its disk fails",
			newFault: brokenDisk("a write is torn", tearWrite),
		}),
	}
}

// hanging makes a fault last longer than a server waits for its disk before it stops to lead, and keeps others away:
// with another node down there would be no majority without the one that hangs.
func hanging(k Kind) Kind {
	k.Alone, k.minHold, k.maxHold = true, 8*time.Second, 15*time.Second
	return k
}

// hangDisk ends only when another node leads, if the one with the disk did.
func hangDisk(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	led := false
	return singleNode(chooseNodeOrLeader(r), "fsync does not return", "fsync returns again",
		func(ctx context.Context, t *Target, node int) error {
			led = t.Leader(ctx) == node
			t.Nodes[node].Disk.Hang()
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			defer t.Nodes[node].Disk.ClearFaults()
			if !led {
				return nil
			}
			return retryUntil(ctx, Patience, func() error {
				if leader := t.Leader(ctx); leader < 0 || leader == node {
					return fmt.Errorf("no other node leads than %s, whose disk hangs", t.Nodes[node].ID)
				}
				return nil
			})
		})
}

// chooseNodeOrLeader chooses the leader every second time, so that it is hit more often than the others.
func chooseNodeOrLeader(r *rand.Rand) nodeChoice {
	if r.IntN(2) == 0 {
		return chooseNode(r, roleLeader)
	}
	return chooseNode(r, roleAny)
}

func slowDisk(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	delay := time.Duration(20+r.IntN(580)) * ms
	return singleNode(chooseNodeOrLeader(r), fmt.Sprintf("each fsync takes %v longer", delay), "the disk is fast again",
		func(_ context.Context, t *Target, node int) error {
			t.Nodes[node].Disk.Slow(delay)
			return nil
		}, func(_ context.Context, t *Target, node int) error {
			t.Nodes[node].Disk.ClearFaults()
			return nil
		})
}

// exitTimeout is how long a node may take to exit because its disk was full, after space was freed.
const exitTimeout = 5 * time.Second

// fullDisk accepts that the node exits, and that it goes on if it can once there is space again.
func fullDisk(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	exits := 0
	return singleNode(chooseNodeOrLeader(r), "the disk is full", "the disk has space again",
		func(_ context.Context, t *Target, node int) error {
			exits = len(t.Nodes[node].Exits())
			return t.Nodes[node].Disk.Fill()
		}, func(ctx context.Context, t *Target, node int) error {
			defer func() { t.excuseExits(node, exits) }()
			n := t.Nodes[node]
			if err := n.Disk.FreeSpace(); err != nil {
				return err
			}
			if !n.Wait(exitTimeout) {
				if s, err := t.nodeStatus(ctx, node); err == nil && s.GetProblem() == "" {
					return nil
				}
			}
			return t.killAndStart(node)
		})
}

func (t *Target) killAndStart(node int) error {
	return errors.Join(t.Nodes[node].Kill(), t.startNode(node))
}

// brokenDisk makes a fault whose disk fails until the node is started again, on a good disk with what had been
// written.
func brokenDisk(
	what string, fail func(*Target, int),
) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		exits := 0
		return singleNode(chooseNodeOrLeader(r), what, "started on a good disk",
			func(_ context.Context, t *Target, node int) error {
				exits = len(t.Nodes[node].Exits())
				fail(t, node)
				return nil
			}, func(_ context.Context, t *Target, node int) error {
				err := t.Nodes[node].Kill()
				t.excuseExits(node, exits)
				t.Nodes[node].Disk.ClearFaults()
				return errors.Join(err, t.startNode(node))
			})
	}
}

func failSyncs(t *Target, node int) { t.Nodes[node].Disk.FailSyncs(true) }
func tearWrite(t *Target, node int) { t.Nodes[node].Disk.Tear() }
