package faults

import (
	"context"
	"math/rand/v2"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// maxNodes is the largest number of nodes, and so how often the fault "upgrade" must happen.
const maxNodes = 5

func upgradeKind() Kind {
	return Kind{
		Name: "upgrade", Description: "the next node is upgraded from the old binary to the new one, early in the run",
		Alone:      true,
		earlySteps: maxNodes, newFault: upgradeNode,
		missingNeed: func(t *Target) string {
			if t.Old == "" {
				return "a run that begins with an older server"
			}
			return ""
		},
	}
}

func upgradeNode(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(ctx context.Context, t *Target) error {
			return t.upgradeNext(ctx)
		}, func(context.Context, *Target) error {
			return nil
		}
}

// isMixed reports whether an upgrade is not finished: some nodes run the old binary, or the feature level is not
// raised yet.
func (t *Target) isMixed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Old != "" && t.upgraded < len(t.Nodes)
}

// skipsFault reports whether a fault must not happen now: upgrades after the last node, and others during the
// upgrade.
func (t *Target) skipsFault(f Fault) bool {
	mixed := t.isMixed()
	if f.skipInUpgrade && mixed {
		t.Note(-1, "%s is skipped until all nodes are upgraded", f.Name)
	}
	return f.skipInUpgrade && mixed || f.isUpgrade && !mixed
}

// upgradeNext upgrades the next node, and raises the feature level after the last one.
func (t *Target) upgradeNext(ctx context.Context) error {
	t.mu.Lock()
	node := t.upgraded
	t.mu.Unlock()
	if err := t.AwaitHealthy(ctx, Patience); err != nil {
		return err
	}
	t.Nodes[node].SetBinary(t.Binary)
	t.Note(node, "gets the new binary")
	if err := t.restartNode(node); err != nil {
		return err
	}
	if err := t.AwaitHealthy(ctx, Patience); err != nil {
		return err
	}
	if node == len(t.Nodes)-1 {
		if err := t.raiseLevel(ctx); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upgraded++
	return nil
}

func (t *Target) raiseLevel(ctx context.Context) error {
	return retryUntil(ctx, Patience, func() error {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		answer, err := t.clients[0].Cluster.RaiseLevel(asking, &adminv1.RaiseLevelRequest{})
		if err == nil {
			t.Note(-1, "all run the new binary; the feature level is %d", answer.GetLevel())
		}
		return err
	})
}

func (t *Target) finishUpgrade(ctx context.Context) error {
	for t.isMixed() {
		if err := t.upgradeNext(ctx); err != nil {
			return err
		}
	}
	return nil
}
