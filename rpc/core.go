package rpc

import (
	"context"
	"errors"
	"fmt"

	"buf.build/go/protovalidate"

	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// core is what the handlers share: the ways to ask the node.
type core struct {
	id        string
	node      Node
	validator protovalidate.Validator
	traces    traces
	// exclusive bounds the reads that have the ledger for themselves; nil for no bound.
	exclusive *gate
}

// propose carries out one command.
func (c core) propose(ctx context.Context, command quota.Command) (quota.Outcome, uint64, error) {
	outcomes, index, err := c.proposeAll(ctx, command)
	if err != nil {
		return quota.Outcome{}, 0, err
	}
	return outcomes[0], index, nil
}

// proposeAll carries out commands in order and answers as many outcomes.
func (c core) proposeAll(ctx context.Context, commands ...quota.Command) ([]quota.Outcome, uint64, error) {
	return c.carryOut(ctx, c.node.Propose, commands)
}

// proposeSoon is proposeAll for what comes often and may wait a moment for company.
func (c core) proposeSoon(ctx context.Context, commands ...quota.Command) ([]quota.Outcome, uint64, error) {
	return c.carryOut(ctx, c.node.ProposeSoon, commands)
}

// proposing is one of the ways to carry commands out.
type proposing func(ctx context.Context, commands ...quota.Command) ([]quota.Outcome, uint64, error)

func (c core) carryOut(ctx context.Context, propose proposing, commands []quota.Command) ([]quota.Outcome, uint64, error) {
	ctx, ended := c.traces.propose(ctx, len(commands))
	outcomes, index, err := propose(ctx, commands...)
	ended(err)
	if err != nil {
		return nil, 0, toError(err)
	}
	if len(outcomes) != len(commands) {
		return nil, 0, toError(fmt.Errorf("the node answered %d outcomes to %d commands; this is a bug of the server", len(outcomes), len(commands)))
	}
	return outcomes, index, nil
}

// try decides commands on the present state and changes nothing.
func (c core) try(ctx context.Context, commands ...quota.Command) ([]quota.Outcome, uint64, error) {
	outcomes := make([]quota.Outcome, len(commands))
	info, err := c.readAlone(ctx, nil, func(v quota.View) error {
		for i, command := range commands {
			outcomes[i] = v.DryRun(command)
		}
		return nil
	})
	return outcomes, info.GetIndex(), err
}

// read lends the state to fn, as fresh as the caller asks. fn must not return a typed nil.
func (c core) read(ctx context.Context, o *quoratev1.ReadOptions, fn func(quota.View) error) (*quoratev1.ReadInfo, error) {
	return c.lend(ctx, toReadOptions(o), fn)
}

// readAlone is read for an fn that tries something out: on the way it may change the state and restore it.
func (c core) readAlone(ctx context.Context, o *quoratev1.ReadOptions, fn func(quota.View) error) (*quoratev1.ReadInfo, error) {
	if c.exclusive != nil {
		by := note(ctx).caller
		if err := c.exclusive.take(by, 1); err != nil {
			return nil, err
		}
		defer c.exclusive.give(by, 1)
	}
	options := toReadOptions(o)
	options.Exclusive = true
	return c.lend(ctx, options, fn)
}

func toReadOptions(o *quoratev1.ReadOptions) cluster.ReadOptions {
	return cluster.ReadOptions{Stale: o.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: o.GetMinIndex()}
}

func (c core) lend(ctx context.Context, options cluster.ReadOptions, fn func(quota.View) error) (*quoratev1.ReadInfo, error) {
	within, cancel := ctx, context.CancelFunc(func() {})
	if options.MinIndex == 0 {
		within, cancel = context.WithTimeout(ctx, leaderPatience)
	}
	defer cancel()
	var refused error
	within, ended := c.traces.read(within, options)
	info, err := c.node.Read(within, options, func(v quota.View) { refused = fn(v) })
	ended(err)
	switch {
	case err != nil:
		return nil, c.readFailure(err, options)
	case refused != nil:
		return nil, toError(refused)
	}
	return c.fromReadInfo(info), nil
}

// readFailure says what a read that ran out of time waited for.
func (c core) readFailure(err error, o cluster.ReadOptions) error {
	var failed *cluster.Error
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) && failed.Reason == cluster.Deadline
	if !late || o.Stale {
		return toError(err)
	}
	if _, known := c.node.Leader(); !known || o.MinIndex == 0 {
		return toError(noLeader())
	}
	return toError(err)
}

func (c core) fromReadInfo(info cluster.ReadInfo) *quoratev1.ReadInfo {
	wire := &quoratev1.ReadInfo{
		Index: info.Index, LedgerTimeMs: int64(info.Now), ServedBy: c.id, Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE,
	}
	if info.Stale {
		wire.Consistency, wire.AgeMs = quoratev1.Consistency_CONSISTENCY_STALE, info.Age.Milliseconds()
	}
	return wire
}

// refused turns the ledger's typed refusal into an error that is nil if there is none.
func refused(e *quota.Error) error {
	if e == nil {
		return nil
	}
	return e
}
