package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// stopPatience is how long a node may take to stop when it is asked to.
const stopPatience = time.Minute

func processKinds() []Kind {
	return []Kind{
		{Name: "kill-leader", Says: "SIGKILL to whoever leads, then a start", from: 0, to: 8 * time.Second, make: kill(leader)},
		{Name: "kill-follower", Says: "SIGKILL to one that follows, then a start", from: 0, to: 8 * time.Second, make: kill(follower)},
		{Name: "kill-all", Says: "SIGKILL to all, then a start in any order", from: 0, to: 2 * time.Second, make: killAll},
		{Name: "pause-leader", Says: "SIGSTOP of the leader, mostly until another one leads", from: time.Second, to: 10 * time.Second, make: pause(leader)},
		{Name: "pause-follower", Says: "SIGSTOP of one that follows", from: time.Second, to: 10 * time.Second, make: pause(follower)},
		{
			Name: "lagging-follower", Says: "one that follows is down until it needs a snapshot, under load",
			from: 12 * time.Second, to: 20 * time.Second, make: kill(follower),
		},
		{Name: "rolling-restart", Says: "each node stops in order and starts again, one after the other", Alone: true, make: rolling},
		upgradeKind(),
	}
}

// single makes a fault of one node, from what is done to it and how it is undone.
func single(
	p pick, what, undone string, begin, end func(ctx context.Context, t *Target, node int) error,
) (func(context.Context, *Target) error, func(context.Context, *Target) error) {
	node := -1
	return func(ctx context.Context, t *Target) error {
			if node = t.take(ctx, p); node < 0 {
				return errNobody
			}
			t.Note(node, "%s", what)
			return begin(ctx, t, node)
		}, func(ctx context.Context, t *Target) error {
			defer t.give(node)
			err := end(ctx, t, node)
			t.Note(node, "%s", undone)
			return err
		}
}

func kill(who role) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		return single(draw(r, who), "killed", "started",
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Kill() },
			func(_ context.Context, t *Target, node int) error { return t.start(node) })
	}
}

func pause(who role) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		return single(draw(r, who), "paused", "resumed",
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Pause() },
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Resume() })
	}
}

// start starts a node that should not run, unless somebody else has.
func (t *Target) start(node int) error {
	if t.Nodes[node].Running() {
		return nil
	}
	return t.Nodes[node].Start()
}

// killAll leaves nodes alone that another fault has: that fault starts them.
func killAll(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	dice := r.Uint64()
	var taken []int
	return func(ctx context.Context, t *Target) error {
			var failed []error
			for range t.Nodes {
				if node := t.take(ctx, pick{role: anyone}); node >= 0 {
					taken = append(taken, node)
					failed = append(failed, t.Nodes[node].Kill())
				}
			}
			t.Note(-1, "killed %d nodes", len(taken))
			return errors.Join(failed...)
		}, func(_ context.Context, t *Target) error {
			order := rand.New(rand.NewPCG(dice, 0))
			order.Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
			var failed []error
			for _, node := range taken {
				failed = append(failed, t.start(node))
				t.give(node)
			}
			t.Note(-1, "started %d nodes", len(taken))
			return errors.Join(failed...)
		}
}

// rolling stops all nodes in order and starts them again, each when the one before is back.
func rolling(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(ctx context.Context, t *Target) error {
		for node := range t.Nodes {
			if err := t.AwaitHealthy(ctx, Patience); err != nil {
				return err
			}
			if err := t.restart(node); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, t *Target) error { return t.AwaitHealthy(ctx, Patience) }
}

// restart asks a node to stop and starts it again.
func (t *Target) restart(node int) error {
	t.Note(node, "asked to stop")
	if err := errors.Join(t.Nodes[node].Terminate(stopPatience), t.start(node)); err != nil {
		return err
	}
	t.Note(node, "started")
	return nil
}
