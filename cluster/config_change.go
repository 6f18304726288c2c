package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// configLock serializes changes of raft's configuration, including the check of the configuration that each is based
// on.
type configLock chan struct{}

func newConfigLock() configLock { return make(configLock, 1) }

// withLock runs f while no other change of this leadership is checked or made.
func (s configLock) withLock(l *leadership, f func() error) error {
	select {
	case s <- struct{}{}:
	case <-l.ctx.Done():
		return l.leadershipLostError(nil)
	}
	defer func() { <-s }()
	return f()
}

// changeConfiguration runs f under the lock. f runs to its end even if ctx ends, because raft cannot cancel a
// configuration change.
func (l *leadership) changeConfiguration(ctx context.Context, f func() (bool, error)) (changed bool, err error) {
	done := make(chan struct{})
	var result struct {
		changed bool
		err     error
	}
	started := l.tasks.start(func() {
		defer close(done)
		result.err = l.configLock.withLock(l, func() (err error) {
			if ctx.Err() != nil {
				return newError(Deadline, true, ctx.Err(), "another membership change took until the deadline")
			}
			result.changed, err = f()
			return err
		})
	})
	if !started {
		return false, l.leadershipLostError(nil)
	}
	select {
	case <-done:
		return result.changed, result.err
	case <-ctx.Done():
		return false, newError(Deadline, false, ctx.Err(),
			"the membership change was not confirmed in time; check with "+
				"`quorate cluster members`, and repeat it if it was not made")
	}
}

// configurationError converts an error of a raft configuration change.
func (l *leadership) configurationError(err error) error {
	if err == nil {
		return nil
	}
	for _, accident := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress, raft.ErrEnqueueTimeout,
		raft.ErrRaftShutdown,
	} {
		if errors.Is(err, accident) {
			return l.node.applyError(err)
		}
	}
	return newError(Unsafe, true, err, "this membership change is not possible")
}
