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
			Name: "remove-member", Says: "a member, alive or dead, is removed through the API and comes back later as a new one",
			late: true, from: 6 * time.Second, to: 14 * time.Second, make: removeMember,
		},
		{
			Name: "demote-member", Says: "a voter loses its vote through the API and gets it back", late: true,
			from: 3 * time.Second, to: 10 * time.Second, make: demoteMember,
		},
		{
			Name: "hand-over", Says: "the leadership is handed to drawn nodes, again and again", late: true,
			from: 4 * time.Second, to: 12 * time.Second, make: handOver,
		},
	}
}

// change is one change of the membership, asked for until it is answered or its fault ends.
type change struct {
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

func drawChange(r *rand.Rand, done string) *change {
	return &change{via: r.IntN(1 << 16), force: r.IntN(2) == 0, done: done}
}

func removeMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c, dead := drawChange(r, "is no member any more"), r.IntN(3) == 0
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.RemoveMember(ctx, &quoratev1.RemoveMemberRequest{Id: id, Force: force})
		return err
	}
	return single(anyRole(r), "to be removed", "the removal is over",
		func(ctx context.Context, t *Target, node int) error {
			t.mark(node, func(l *leave) { l.removed = true })
			if dead {
				t.Note(node, "killed before that")
				if err := t.Nodes[node].Kill(); err != nil {
					return err
				}
			}
			c.begin(ctx, t, node)
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			c.end(t)
			// If it was dead, it comes back with its data first: that must not make it a member again.
			if err := t.start(node); err != nil {
				return err
			}
			return t.bringBack(ctx, c)
		})
}

func demoteMember(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	c := drawChange(r, "has no vote any more")
	c.ask = func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.DemoteMember(ctx, &quoratev1.DemoteMemberRequest{Id: id, Force: force})
		return err
	}
	return single(anyRole(r), "to be demoted", "the demotion is over",
		func(ctx context.Context, t *Target, node int) error {
			t.mark(node, func(l *leave) { l.demoted = true })
			c.begin(ctx, t, node)
			return nil
		}, func(ctx context.Context, t *Target, node int) error {
			c.end(t)
			return t.bringBack(ctx, c)
		})
}

func (c *change) begin(ctx context.Context, t *Target, node int) {
	c.node, c.ended = node, make(chan struct{})
	lasts, stop := context.WithCancel(ctx)
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.persist(ctx, lasts, t)
	}()
}

// persist asks one node after the other while the fault lasts. What is refused is asked for with force from then on: of three
// voters none can be missed by the rules. A call that was made is waited for, so that none is under way afterwards.
func (c *change) persist(ctx, lasts context.Context, t *Target) {
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
		case !Sleep(lasts, look):
			return
		}
	}
}

func (c *change) end(t *Target) {
	c.stop()
	<-c.ended
	if !c.confirmed {
		t.Note(c.node, "no answer says that it %s: %v", c.done, c.failed)
	}
}

// bringBack waits until the node of a change is a voter again, whether or not the change has happened. If that takes too
// long it is left to Heal: others may still be in the way.
func (t *Target) bringBack(ctx context.Context, c *change) error {
	if err := eventually(ctx, Patience, func() error { return t.reseat(ctx, c.node) }); err != nil {
		t.Note(c.node, "no voter yet: %v", err)
		return nil // Heal sees to it, and fails if it cannot
	}
	if c.confirmed {
		t.mark(c.node, func(l *leave) { *l = leave{} })
	}
	t.Note(c.node, "a voter")
	return nil
}

// handOver takes no node: whatever else happens to whoever is to lead may happen at the same time.
func handOver(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	seed, done := r.Uint64(), make(chan struct{})
	var stop context.CancelFunc
	return func(ctx context.Context, t *Target) error {
			lasts, cancel := context.WithCancel(ctx)
			stop = cancel
			t.Note(-1, "leaders are asked to hand over")
			go func() {
				defer close(done)
				t.handOver(ctx, lasts, rand.New(rand.NewPCG(seed, 0)))
			}()
			return nil
		}, func(context.Context, *Target) error {
			stop()
			<-done
			return nil
		}
}

func (t *Target) handOver(ctx, lasts context.Context, r *rand.Rand) {
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
