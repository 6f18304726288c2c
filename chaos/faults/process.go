package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// stopTimeout is how long a node may take to stop after SIGTERM.
const stopTimeout = time.Minute

func processKinds() []Kind {
	return []Kind{
		{
			Name: "kill-leader", Description: "SIGKILL to the leader, then a start",
			minHold: 0, maxHold: 8 * time.Second, newFault: killNode(roleLeader),
		},
		{
			Name: "kill-follower", Description: "SIGKILL to a follower, then a start",
			minHold: 0, maxHold: 8 * time.Second, newFault: killNode(roleFollower),
		},
		{
			Name: "kill-all", Description: "SIGKILL to all nodes, then a start in random order",
			minHold: 0, maxHold: 2 * time.Second, newFault: killAll,
		},
		{
			Name: "new-addresses", Description: "SIGKILL to all nodes, which come back with other addresses",
			Alone: true, skipInUpgrade: true, maxHold: 2 * time.Second, newFault: moveAll,
		},
		{
			Name: "pause-leader", Description: "SIGSTOP of the leader, mostly until another node leads",
			minHold: time.Second, maxHold: 10 * time.Second, newFault: pauseNode(roleLeader),
		},
		{
			Name: "pause-follower", Description: "SIGSTOP of a follower",
			minHold: time.Second, maxHold: 10 * time.Second, newFault: pauseNode(roleFollower),
		},
		{
			Name: "lagging-follower", Description: "a follower is down under load until it needs a snapshot",
			minHold: 12 * time.Second, maxHold: 20 * time.Second, newFault: killNode(roleFollower),
		},
		{
			Name: "rolling-restart", Description: "one node after the other gets SIGTERM and is started again",
			Alone: true, newFault: rollingRestart,
		},
		upgradeKind(),
	}
}

func singleNode(
	p nodeChoice, what, undone string, begin, end func(ctx context.Context, t *Target, node int) error,
) (func(context.Context, *Target) error, func(context.Context, *Target) error) {
	node := -1
	return func(ctx context.Context, t *Target) error {
			if node = t.reserveNode(ctx, p); node < 0 {
				return errNoFreeNode
			}
			t.Note(node, "%s", what)
			return begin(ctx, t, node)
		}, func(ctx context.Context, t *Target) error {
			defer t.releaseNode(node)
			err := end(ctx, t, node)
			t.Note(node, "%s", undone)
			return err
		}
}

func killNode(role nodeRole) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		return singleNode(chooseNode(r, role), "killed", "started",
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Kill() },
			func(_ context.Context, t *Target, node int) error { return t.startNode(node) })
	}
}

func pauseNode(role nodeRole) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		return singleNode(chooseNode(r, role), "paused", "resumed",
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Pause() },
			func(_ context.Context, t *Target, node int) error { return t.Nodes[node].Resume() })
	}
}

func (t *Target) startNode(node int) error {
	if t.Nodes[node].Running() {
		return nil
	}
	return t.Nodes[node].Start()
}

// killAll spares nodes that another fault has reserved: that fault starts them.
func killAll(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	dice := r.Uint64()
	var taken []int
	return func(ctx context.Context, t *Target) error {
			var failed []error
			for range t.Nodes {
				if node := t.reserveNode(ctx, nodeChoice{role: roleAny}); node >= 0 {
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
				failed = append(failed, t.startNode(node))
				t.releaseNode(node)
			}
			t.Note(-1, "started %d nodes", len(taken))
			return errors.Join(failed...)
		}
}

// moveAll ends when the cluster is healthy at its other addresses.
func moveAll(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	kill, start := killAll(r)
	return func(ctx context.Context, t *Target) error {
			if err := kill(ctx, t); err != nil {
				return err
			}
			t.Note(-1, "all nodes get other addresses")
			return t.MoveAll()
		}, func(ctx context.Context, t *Target) error {
			return errors.Join(start(ctx, t), t.AwaitHealthy(ctx, Patience))
		}
}

// rollingRestart stops and starts each node once the one before is back.
func rollingRestart(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(ctx context.Context, t *Target) error {
		for node := range t.Nodes {
			if err := t.AwaitHealthy(ctx, Patience); err != nil {
				return err
			}
			if err := t.restartNode(node); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, t *Target) error { return t.AwaitHealthy(ctx, Patience) }
}

func (t *Target) restartNode(node int) error {
	t.Note(node, "asked to stop")
	if err := errors.Join(t.Nodes[node].Terminate(stopTimeout), t.startNode(node)); err != nil {
		return err
	}
	t.Note(node, "started")
	return nil
}
