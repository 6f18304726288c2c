package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// seats lets one change of the configuration happen at a time, together with the look that it is based on.
type seats chan struct{}

func newSeats() seats { return make(seats, 1) }

// alone runs f while nobody else of this leadership looks at the configuration to change it.
func (s seats) alone(l *life, f func() error) error {
	select {
	case s <- struct{}{}:
	case <-l.ctx.Done():
		return l.lost(nil)
	}
	defer func() { <-s }()
	return f()
}

// change runs f alone, to its end even if the caller's ctx ends before: raft knows no way back.
func (l *life) change(ctx context.Context, f func() (bool, error)) (changed bool, err error) {
	done := make(chan struct{})
	var result struct {
		changed bool
		err     error
	}
	started := l.tasks.start(func() {
		defer close(done)
		result.err = l.seats.alone(l, func() (err error) {
			if ctx.Err() != nil {
				return failure(Deadline, true, ctx.Err(), "another change of the membership took all the time")
			}
			result.changed, err = f()
			return err
		})
	})
	if !started {
		return false, l.lost(nil)
	}
	select {
	case <-done:
		return result.changed, result.err
	case <-ctx.Done():
		return false, failure(Deadline, false, ctx.Err(), "the change of the membership was not confirmed in time; look with "+
			"`quorate cluster members`, and repeat it if it did not happen")
	}
}

// fromConfiguration maps an error of raft's configuration path.
func (l *life) fromConfiguration(err error) error {
	if err == nil {
		return nil
	}
	for _, accident := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress, raft.ErrEnqueueTimeout, raft.ErrRaftShutdown,
	} {
		if errors.Is(err, accident) {
			return l.node.fromRaft(err)
		}
	}
	return failure(Unsafe, true, err, "this change of the membership makes no sense")
}
