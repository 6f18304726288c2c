package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// memberKinds change the membership. They may be mixed with all other faults: raft makes only one change at a time,
// and a removed node loses its data only once the removal is certain, see settledRoles. The worst that a removal can
// do is to cost the majority while another fault keeps a needed node away.
func memberKinds() []Kind {
	return []Kind{
		{
			Name:          "remove-member",
			Description:   "a running or killed member is removed through the API and later rejoins as a new one",
			skipInUpgrade: true, minHold: 6 * time.Second, maxHold: 14 * time.Second, newFault: removeMember,
		},
		{
			Name: "demote-member", Description: "a voter loses its vote through the API and gets it back",
			skipInUpgrade: true,
			minHold:       3 * time.Second, maxHold: 10 * time.Second, newFault: demoteMember,
		},
		{
			Name: "hand-over", Description: "the leadership is transferred to random nodes, again and again",
			skipInUpgrade: true,
			minHold:       4 * time.Second, maxHold: 12 * time.Second, newFault: handOver,
		},
	}
}

// memberChange is one change of the membership. It is requested until a request succeeds or the fault ends.
type memberChange struct {
	node, via int
	// force sets the force flag from the beginning, which allows the change even if too few other members are
	// healthy.
	force bool
	// done says what a confirmed change means.
	done string
	ask  func(ctx context.Context, c *client.Client, id string, force bool) error

	stop  context.CancelFunc
	ended chan struct{}
	// confirmed and failed are the result; they may be read after ended is closed.
	confirmed bool
	failed    error
}

func drawChange(r *rand.Rand, done string) *memberChange {
	return &memberChange{via: r.IntN(1 << 16), force: r.IntN(2) == 0, done: done}
}

func removeMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c, dead := drawChange(r, "is not a member any more"), r.IntN(3) == 0
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: id, Force: force})
		return err
	}
	return singleNode(chooseNodeOrLeader(r), "removal begins", "removal ends",
		func(ctx context.Context, t *Target, node int) error {
			t.updateDeparture(node, func(l *departure) { l.removed = true })
			if dead {
				t.Note(node, "killed before its removal")
				if err := t.Nodes[node].Kill(); err != nil {
					return err
				}
			}
			c.startAsking(ctx, t, node)
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			c.stopAsking(t)
			// A killed node first restarts with its data, which must not make it a member again.
			if err := t.startNode(node); err != nil {
				return err
			}
			return t.awaitVoter(ctx, c)
		})
}

func demoteMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c := drawChange(r, "has no vote any more")
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.DemoteMember(ctx, &adminv1.DemoteMemberRequest{Id: id, Force: force})
		return err
	}
	return singleNode(chooseNodeOrLeader(r), "demotion begins", "demotion ends",
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

// askUntilDone asks one node after the other while the fault lasts. A refused change is requested with force from
// then on: with three voters the rules allow none to be missing. A call under way is waited for, so that none is left
// afterwards.
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
		t.Note(c.node, "no answer confirms that it %s: %v", c.done, c.failed)
	}
}

// awaitVoter waits until the node of a change is a voter again, whether or not the change took effect. If that takes
// too long, it leaves the rest to Heal: other faults may still prevent it.
func (t *Target) awaitVoter(ctx context.Context, c *memberChange) error {
	if err := retryUntil(ctx, Patience, func() error { return t.restoreVote(ctx, c.node) }); err != nil {
		t.Note(c.node, "not a voter yet: %v", err)
		return nil // Heal restores the vote, or fails
	}
	if c.confirmed {
		t.updateDeparture(c.node, func(l *departure) { *l = departure{} })
	}
	t.Note(c.node, "a voter again")
	return nil
}

// handOver does not reserve the nodes, so other faults may hit the next leader at the same time.
func handOver(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	seed, done := r.Uint64(), make(chan struct{})
	var stop context.CancelFunc
	return func(ctx context.Context, t *Target) error {
			lasts, cancel := context.WithCancel(ctx)
			stop = cancel
			t.Note(-1, "leadership transfers begin")
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
		answer, err := t.clients[via].Cluster.TransferLeader(ctx,
			&adminv1.TransferLeaderRequest{Id: t.Nodes[node].ID})
		switch {
		case err != nil:
			failed, last = failed+1, err
		case !answer.GetWrite().GetRepetition():
			handed++
			t.Note(node, "leadership transferred here")
		}
		Sleep(lasts, time.Duration(200+r.IntN(1300))*ms)
	}
	what := fmt.Sprintf("the leadership was transferred %d times", handed)
	if failed > 0 {
		what += fmt.Sprintf(", and %d transfers failed: %v", failed, last)
	}
	t.Note(-1, "%s", what)
}
