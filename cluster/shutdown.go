package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// leaveTimeout bounds how long a node takes to announce its shutdown by gossip.
const leaveTimeout = 2 * time.Second

// Shutdown stops the node: it transfers the leadership, ends its tasks, leaves gossip, shuts down raft and closes the
// stores, in that order. It attempts all steps and returns all errors. ctx bounds the waiting, not the steps. Every
// call waits for the first one and returns the same result.
func (n *Node) Shutdown(ctx context.Context) error {
	n.stopOnce.Do(func() {
		n.stopErr = n.shutdown(ctx)
		n.closeDone.Do(func() { close(n.done) })
	})
	return n.stopErr
}

func (n *Node) shutdown(ctx context.Context) error {
	n.service.stopping.Store(true)
	n.changes.notifyAll()
	if err := n.elections.transfer(ctx); err != nil {
		// Not a failure of the shutdown: the others elect a leader after a timeout.
		n.log.Warn("could not transfer the leadership", "error", err)
	}
	n.service.cancel()
	errs := []error{wrapError("end the tasks", n.tasks.wait(ctx)), n.leaveGossip(ctx)}
	stopped := n.stopRaft(ctx)
	errs = append(errs, wrapError("shut raft down", stopped))
	if stopped == nil && n.service.fault() == nil {
		errs = append(errs, wrapError("record the stop", n.parts.recordStop()))
	}
	errs = append(errs, wrapError("close the stores", n.parts.close()))
	return errors.Join(errs...)
}

func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (n *Node) leaveGossip(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := n.parts.Discovery.Leave(ctx); err != nil {
		n.log.Debug("could not announce the shutdown to all peers", "error", err)
	}
	return wrapError("close gossip", n.parts.Discovery.Close())
}

func (n *Node) stopRaft(ctx context.Context) error {
	return awaitFuture(ctx, n.raft.Shutdown())
}

// awaitFuture waits for a raft future, which does not support contexts.
func awaitFuture(ctx context.Context, future raft.Future) error {
	var err error
	if late := waitOrTimeout(ctx, func() { err = future.Error() }); late != nil {
		return late
	}
	return err
}

// fail stops the node for good because of a fault in itself: it stops serving, transfers the leadership, shuts down
// raft and closes Done. The stores stay open until Shutdown, because raft may use them.
func (n *Node) fail(fault error) { n.stopServing(fault, false) }

// stopServing implements fail. With stays, Done remains open, so that the process keeps running and can report the
// fault.
func (n *Node) stopServing(fault error, stays bool) {
	n.faultOnce.Do(func() {
		n.service.fatal.Store(&fault)
		n.log.Error("this node stops serving", "reason", fault)
		n.changes.notifyAll()
		go n.stopAfterFault(stays)
	})
}

func (n *Node) stopAfterFault(stays bool) {
	select {
	case <-n.opened:
	case <-n.service.ctx.Done(): // the node never opened, or is shutting down anyway
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*n.config.scaleTimeout(stepTimeout))
	defer cancel()
	if err := n.elections.transfer(ctx); err != nil {
		n.log.Warn("could not transfer the leadership", "error", err)
	}
	n.service.cancel()
	// First, because raft does not answer requests that arrive while it shuts down.
	if err := n.tasks.wait(ctx); err != nil {
		n.log.Error("the tasks of this node do not end", "error", err)
	}
	if err := n.stopRaft(ctx); err != nil {
		n.log.Error("raft does not stop", "error", err)
	}
	if stays {
		return
	}
	n.closeDone.Do(func() { close(n.done) })
}
