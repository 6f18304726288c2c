package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// memberKinds change the membership while other things go wrong. None is alone: whatever the others do, raft lets one change
// happen at a time, and what was removed loses its data only once that is beyond doubt (settled). What a removal may
// cost is the majority, for as long as another fault keeps a needed node away.
func memberKinds() []Kind {
	return []Kind{
		{
			Name: "remove-member", Description: "a member, alive or dead, is removed through the API and comes back later as a new one",
			skipInUpgrade: true, minHold: 6 * time.Second, maxHold: 14 * time.Second, newFault: removeMember,
		},
		{
			Name: "demote-member", Description: "a voter loses its vote through the API and gets it back", skipInUpgrade: true,
			minHold: 3 * time.Second, maxHold: 10 * time.Second, newFault: demoteMember,
		},
		{
			Name: "hand-over", Description: "the leadership is handed to drawn nodes, again and again", skipInUpgrade: true,
			minHold: 4 * time.Second, maxHold: 12 * time.Second, newFault: handOver,
		},
	}
}

// memberChange is one change of the membership, asked for until it is answered or its fault ends.
type memberChange struct {
	node, via int
	// force asks with force from the beginning: also while too few of the others are well.
	force bool
	// done says what has happened once ask was answered.
	done string
	ask  func(ctx context.Context, c *client.Client, id string, force bool) error

	stop  context.CancelFunc
	ended chan struct{}
	// confirmed and failed are what became of it; they may be read after ended.
	confirmed bool
	failed    error
}

func drawChange(r *rand.Rand, done string) *memberChange {
	return &memberChange{via: r.IntN(1 << 16), force: r.IntN(2) == 0, done: done}
}

func removeMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c, dead := drawChange(r, "is no member any more"), r.IntN(3) == 0
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.RemoveMember(ctx, &quoratev1.RemoveMemberRequest{Id: id, Force: force})
		return err
	}
	return singleNode(chooseNodeOrLeader(r), "to be removed", "the removal is over",
		func(ctx context.Context, t *Target, node int) error {
			t.updateDeparture(node, func(l *departure) { l.removed = true })
			if dead {
				t.Note(node, "killed before that")
				if err := t.Nodes[node].Kill(); err != nil {
					return err
				}
			}
			c.startAsking(ctx, t, node)
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			c.stopAsking(t)
			// If it was dead, it comes back with its data first: that must not make it a member again.
			if err := t.startNode(node); err != nil {
				return err
			}
			return t.awaitVoter(ctx, c)
		})
}

func demoteMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c := drawChange(r, "has no vote any more")
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.DemoteMember(ctx, &quoratev1.DemoteMemberRequest{Id: id, Force: force})
		return err
	}
	return singleNode(chooseNodeOrLeader(r), "to be demoted", "the demotion is over",
		func(ctx context.Context, t *Target, node int) error {
			t.updateDeparture(node, func(l *departure) { l.demoted = true })
			c.startAsking(ctx, t, node)
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			c.stopAsking(t)
			return t.awaitVoter(ctx, c)
		})
}

func (c *memberChange) startAsking(ctx context.Context, t *Target, node int) {
	c.node, c.ended = node, make(chan struct{})
	lasts, stop := context.WithCancel(ctx)
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.askUntilDone(ctx, lasts, t)
	}()
}

// askUntilDone asks one node after the other while the fault lasts. What is refused is asked for with force from then on: of three
// voters none can be missed by the rules. A call that was made is waited for, so that none is under way afterwards.
func (c *memberChange) askUntilDone(ctx, lasts context.Context, t *Target) {
	force := c.force
	for i := c.via; ; i++ {
		via := i % len(t.Nodes)
		c.failed = c.ask(ctx, t.clients[via], t.Nodes[c.node].ID, force)
		switch {
		case c.failed == nil:
			c.confirmed = true
			t.Note(c.node, "%s, says %s", c.done, t.Nodes[via].ID)
			return
		case connect.CodeOf(c.failed) == connect.CodeFailedPrecondition && !force:
			t.Note(c.node, "refused: %v", c.failed)
			force = true
		case !Sleep(lasts, pollInterval):
			return
		}
	}
}

func (c *memberChange) stopAsking(t *Target) {
	c.stop()
	<-c.ended
	if !c.confirmed {
		t.Note(c.node, "no answer says that it %s: %v", c.done, c.failed)
	}
}

// awaitVoter waits until the node of a change is a voter again, whether or not the change has happened. If that takes too
// long it is left to Heal: others may still be in the way.
func (t *Target) awaitVoter(ctx context.Context, c *memberChange) error {
	if err := retryUntil(ctx, Patience, func() error { return t.restoreVote(ctx, c.node) }); err != nil {
		t.Note(c.node, "no voter yet: %v", err)
		return nil // Heal sees to it, and fails if it cannot
	}
	if c.confirmed {
		t.updateDeparture(c.node, func(l *departure) { *l = departure{} })
	}
	t.Note(c.node, "a voter")
	return nil
}

// transferLeadership takes no node: whatever else happens to whoever is to lead may happen at the same time.
func handOver(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	seed, done := r.Uint64(), make(chan struct{})
	var stop context.CancelFunc
	return func(ctx context.Context, t *Target) error {
			lasts, cancel := context.WithCancel(ctx)
			stop = cancel
			t.Note(-1, "leaders are asked to hand over")
			go func() {
				defer close(done)
				t.transferLeadership(ctx, lasts, rand.New(rand.NewPCG(seed, 0)))
			}()
			return nil
		}, func(context.Context, *Target) error {
			stop()
			<-done
			return nil
		}
}

func (t *Target) transferLeadership(ctx, lasts context.Context, r *rand.Rand) {
	handed, failed := 0, 0
	var last error
	for lasts.Err() == nil {
		via, node := r.IntN(len(t.Nodes)), r.IntN(len(t.Nodes))
		answer, err := t.clients[via].Cluster.TransferLeader(ctx, &quoratev1.TransferLeaderRequest{Id: t.Nodes[node].ID})
		switch {
		case err != nil:
			failed, last = failed+1, err
		case answer.GetChanged():
			handed++
			t.Note(node, "was handed the leadership")
		}
		Sleep(lasts, time.Duration(200+r.IntN(1300))*ms)
	}
	what := fmt.Sprintf("the leadership was handed over %d times", handed)
	if failed > 0 {
		what += fmt.Sprintf(", and %d times not: %v", failed, last)
	}
	t.Note(-1, "%s", what)
}
