// Package handlers implements the services of the API: each method converts a request with package wire, asks the
// node, and converts the answer.
//
// [Service] is what the handlers share: proposing commands, reading the state, dry runs. [Node] is all that they need
// of the node below. A file holds the methods of one service or of one noun.
package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"buf.build/go/protovalidate"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/authorize"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// Service is what the handlers share: the ways to ask the node.
type Service struct {
	ID        string
	Node      Node
	Validator protovalidate.Validator
	Traces    observe.Traces
	Expensive *admission.ExpensiveReads
	// Intents writes the intents of changes before they are proposed, and returns when they are on disk; nil if none are
	// required. GrantIntents requires those of grants too.
	Intents      func(context.Context, ...audit.Record) error
	GrantIntents bool
	// Access knows the caller of a call, and what it may see of the cluster.
	Access *authorize.Authorizer
	// CountDenial counts a request that this node denied, by the tree and the reason; nil does not.
	CountDenial func(tree, reason string)
}

func (c Service) proposeOne(ctx context.Context, command quota.Command) (ledger.Outcome, uint64, error) {
	outcomes, index, err := c.proposeAll(ctx, command)
	if err != nil {
		return ledger.Outcome{}, 0, err
	}
	return outcomes[0], index, nil
}

// proposeAll returns an outcome for each command, in order. Those that their caller may not give are refused here and
// not written to the log.
func (c Service) proposeAll(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return c.proposeWith(ctx, c.Node.Propose, commands)
}

// proposeSoon is proposeAll for frequent commands, which may wait a moment to share a log entry.
func (c Service) proposeSoon(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return c.proposeWith(ctx, c.Node.ProposeBatched, commands)
}

type proposeFunc func(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error)

func (c Service) proposeWith(
	ctx context.Context, propose proposeFunc, commands []quota.Command,
) ([]ledger.Outcome, uint64, error) {
	outcomes, index, err := c.refuseOrPropose(ctx, propose, commands)
	if err == nil && !slices.ContainsFunc(outcomes, func(o ledger.Outcome) bool { return o.Refused == nil }) {
		err = c.refuseUnproved(ctx)
	}
	return outcomes, index, err
}

func (c Service) refuseOrPropose(
	ctx context.Context, propose proposeFunc, commands []quota.Command,
) ([]ledger.Outcome, uint64, error) {
	admission.TicketOf(ctx).MarkPrepared()
	refused, err := c.refuseEarly(ctx, commands)
	if err != nil {
		return nil, 0, err
	}
	if refused == nil {
		return c.proposePermitted(ctx, propose, commands)
	}
	permitted := refused.permitted(commands)
	if len(permitted) == 0 {
		return refused.outcomes, refused.index, nil
	}
	outcomes, index, err := c.proposePermitted(ctx, propose, permitted)
	return refused.merge(outcomes), index, err
}

func (c Service) proposePermitted(
	ctx context.Context, propose proposeFunc, commands []quota.Command,
) ([]ledger.Outcome, uint64, error) {
	if err := c.writeIntents(ctx, commands); err != nil {
		return nil, 0, err
	}
	ctx, ended := c.Traces.StartPropose(ctx, len(commands))
	outcomes, index, err := propose(cluster.WithCaller(ctx, identify.CallerOf(ctx)), commands...)
	ended(err)
	if err != nil {
		return nil, 0, wire.ToError(err)
	}
	showOutcomes(ctx, outcomes)
	if len(outcomes) != len(commands) {
		return nil, 0, wire.ToError(
			fmt.Errorf("the node answered %d outcomes to %d commands; this is a bug of the server",
				len(outcomes), len(commands)))
	}
	for i := range outcomes {
		c.Access.NoteWouldRefuse(ctx, outcomes[i].WouldRefuse)
		c.noteDenial(outcomes[i])
	}
	return outcomes, index, nil
}

// noteDenial counts an outcome that is a denial. Each request passes here once, on the node that leads: alone, in a
// batch, joined with others or of a stream.
func (c Service) noteDenial(o ledger.Outcome) {
	if c.CountDenial != nil && isDenied(o) && !o.Repeated {
		c.CountDenial(o.Decision.DenialReason())
	}
}

// refuseUnproved returns an error for a call whose caller became anonymous before this node knew that the cluster is
// guarded. It is for commands of which none was carried out.
func (c Service) refuseUnproved(ctx context.Context) (refused error) {
	if identify.Unproved(ctx) == nil {
		return nil
	}
	_, err := c.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		refused = unprovedUnder(ctx, v.Book())
	})
	if err != nil {
		return wire.ToError(err)
	}
	return refused
}

// unprovedUnder is identify.Unproved for a call that a book decides; nil if the cluster is not guarded by it.
func unprovedUnder(ctx context.Context, book *access.Book) error {
	if book.Mode() != access.Guarded {
		return nil
	}
	return identify.Unproved(ctx)
}

// tryCommand changes nothing. For a command with effects on requests, it finds these too.
func (c Service) tryCommand(ctx context.Context, command quota.Command) (ledger.Outcome, uint64, error) {
	options, decide := cluster.ReadOptions{}, ledger.Sandbox.DryRunFrom
	switch facts := quota.FactsOf(command); facts.DryRun {
	case quota.NoDryRun:
		return ledger.Outcome{}, 0, fmt.Errorf("%s has no dry run; this is a bug of the server", facts.Name)
	case quota.TriesEffects:
		options.WhatIf, decide = true, ledger.Sandbox.WhatIf
	case quota.TriesDecision:
	}
	outcomes, index, err := c.dryRun(ctx, options, decide, []quota.Command{command})
	if err != nil {
		return ledger.Outcome{}, 0, err
	}
	return outcomes[0], index, nil
}

// planChanges leaves out the effects of changes on requests.
func (c Service) planChanges(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return c.dryRun(ctx, cluster.ReadOptions{Plan: true}, ledger.Sandbox.DryRunFrom, commands)
}

func (c Service) dryRun(
	ctx context.Context, options cluster.ReadOptions,
	decide func(ledger.Sandbox, ledger.Origin, quota.Command) ledger.Outcome, commands []quota.Command,
) ([]ledger.Outcome, uint64, error) {
	outcomes, from := make([]ledger.Outcome, len(commands)), ledger.Origin{Caller: identify.CallerOf(ctx)}
	info, err := lendInTurn(ctx, c, options, c.Node.Sandbox, func(v ledger.Sandbox) error {
		if err := unprovedUnder(ctx, v.Book()); err != nil {
			return err
		}
		for i, command := range commands {
			outcomes[i] = decide(v, from, command)
		}
		showOutcomes(ctx, outcomes)
		return nil
	})
	return outcomes, info.GetIndex(), err
}

// readState lends what the caller may see of the state to fn, as fresh as it asks. fn must not return a typed nil.
func (c Service) readState(
	ctx context.Context, o *quoratev1.ReadOptions, fn func(ledger.Reader) error,
) (*quoratev1.ReadInfo, error) {
	return lendState(ctx, c, toReadOptions(o), c.Node.Read, asReader(ctx, fn))
}

func asReader(ctx context.Context, fn func(ledger.Reader) error) func(ledger.Reader) error {
	return func(v ledger.Reader) error {
		if err := unprovedUnder(ctx, v.Book()); err != nil {
			return err
		}
		reader, refused := v.ReaderOf(identify.CallerOf(ctx))
		if refused != nil {
			return refused
		}
		return shownTo(ctx, fn(reader))
	}
}

// readInTurn is read for what may cost as much as many writes: it waits for its turn among all such reads.
func (c Service) readInTurn(
	ctx context.Context, o *quoratev1.ReadOptions, fn func(ledger.Reader) error,
) (*quoratev1.ReadInfo, error) {
	return lendInTurn(ctx, c, toReadOptions(o), c.Node.Read, asReader(ctx, fn))
}

// lendSandbox is readInTurn for an fn that changes the state on its way and restores it.
func (c Service) lendSandbox(
	ctx context.Context, o cluster.ReadOptions, fn func(ledger.Sandbox) error,
) (*quoratev1.ReadInfo, error) {
	return lendInTurn(ctx, c, o, c.Node.Sandbox, func(v ledger.Sandbox) error {
		if err := unprovedUnder(ctx, v.Book()); err != nil {
			return err
		}
		reader, refused := v.ReaderOf(identify.CallerOf(ctx))
		if refused != nil {
			return refused
		}
		return shownTo(ctx, fn(reader))
	})
}

// SmallRead is how many records, or nodes times resources, a read may visit without waiting for its turn.
const SmallRead = 2000

// readBySize waits for a turn only if what size counts is much.
func (c Service) readBySize(
	ctx context.Context, o *quoratev1.ReadOptions, size func(ledger.Reader) int, fn func(ledger.Reader) error,
) (*quoratev1.ReadInfo, error) {
	large := false
	read, err := c.readState(ctx, o, func(v ledger.Reader) error {
		if large = size(v) > SmallRead; large {
			return nil
		}
		return fn(v)
	})
	if err != nil || !large {
		return read, err
	}
	return c.readInTurn(ctx, o, fn)
}

func toReadOptions(o *quoratev1.ReadOptions) cluster.ReadOptions {
	return cluster.ReadOptions{
		Stale:    o.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE,
		MinIndex: o.GetMinIndex(),
	}
}

// requirePlace refuses a list that begins with no record at all if the caller does not see the place that it is of: it
// is misspelled. What is remembered of a place that was removed is still listed.
func requirePlace(v ledger.Reader, page wire.Page, found int, at wire.NodeNames) error {
	if found > 0 || !page.IsFirst() {
		return nil
	}
	return refusalOrNil(v.RequirePlace(at.GetTree(), at.GetNode()))
}

type lender[V any] func(ctx context.Context, o cluster.ReadOptions, fn func(V)) (cluster.ReadInfo, error)

// lendInTurn is lendState when the caller's turn has come. The turn of a call lasts until its answer is made and
// begins to be sent.
func lendInTurn[V any](
	ctx context.Context, c Service, options cluster.ReadOptions, from lender[V], fn func(V) error,
) (*quoratev1.ReadInfo, error) {
	var read *quoratev1.ReadInfo
	err := c.inTurn(ctx, func(admit func() error) (err error) {
		options.Admit = admit
		read, err = lendState(ctx, c, options, from, fn)
		return err
	})
	return read, err
}

// inTurn starts the turn when work calls admit, and ends it at once if work fails.
func (c Service) inTurn(ctx context.Context, work func(admit func() error) error) error {
	notes, known := ctx.Value(admission.TicketKey{}).(*admission.Ticket)
	if !known {
		notes = &admission.Ticket{}
		defer notes.Turn.EndTurn()
	}
	notes.Turn.EndTurn() // a call that reads again waits again
	notes.MarkPrepared()
	give, err := c.Expensive.TryEnter(notes.Caller)
	if err != nil {
		return err
	}
	notes.Turn.AddEnd(give)
	err = work(func() error {
		leave, err := c.Expensive.WaitTurn(ctx, notes.Caller, notes.Prepared)
		if err == nil {
			notes.Turn.AddEnd(leave)
			notes.Prepared = 0
		}
		return err
	})
	if err != nil {
		notes.Turn.EndTurn()
	}
	return err
}

func lendState[V any](
	ctx context.Context, c Service, options cluster.ReadOptions, from lender[V], fn func(V) error,
) (*quoratev1.ReadInfo, error) {
	admission.TicketOf(ctx).MarkPrepared()
	within, cancel := ctx, context.CancelFunc(func() {})
	if options.MinIndex == 0 {
		within, cancel = context.WithTimeout(ctx, relay.LeaderPatience)
	}
	defer cancel()
	var refused error
	within, ended := c.Traces.StartRead(within, options)
	info, err := from(within, options, func(v V) { refused = fn(v) })
	ended(err)
	switch {
	case err != nil:
		return nil, c.readFailure(err, options)
	case refused != nil:
		return nil, wire.ToError(refused)
	}
	return c.fromReadInfo(info), nil
}

func (c Service) readFailure(err error, o cluster.ReadOptions) error {
	var failed *cluster.Error
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) && failed.Reason == cluster.Deadline
	if !late || o.Stale {
		return wire.ToError(err)
	}
	leader, known := c.Node.Leader()
	switch {
	case !known:
		return wire.ToError(wire.NoLeaderError())
	case o.MinIndex == 0:
		return wire.ToError(&cluster.Error{
			Reason: cluster.Overloaded, NotApplied: true, Leader: leader.ID, Cause: err,
			Text: fmt.Sprintf("the read was not confirmed by leader %s and served within %v; the cluster is busy or its "+
				"disks are slow: try again, or read with consistency stale", leader.ID, relay.LeaderPatience),
		})
	}
	return wire.ToError(err)
}

func (c Service) fromReadInfo(info cluster.ReadInfo) *quoratev1.ReadInfo {
	shown := &quoratev1.ReadInfo{
		Index: info.Index, LedgerTimeMs: int64(info.Now), ServedBy: c.ID,
		Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE,
	}
	if info.Stale {
		shown.Consistency, shown.AgeMs = quoratev1.Consistency_CONSISTENCY_STALE, info.Age.Milliseconds()
	}
	return shown
}

// namespaceOf is that of the ids that a caller names without one: its user, or the default without a credential.
func namespaceOf(ctx context.Context) string {
	if caller := identify.CallerOf(ctx); caller != nil && caller.User != "" {
		return caller.User
	}
	return quota.DefaultNamespace
}

// showOutcomes names the allocations in refusals without the namespace of the caller.
func showOutcomes(ctx context.Context, outcomes []ledger.Outcome) {
	for i := range outcomes {
		outcomes[i].Refused = wire.ToReader(outcomes[i].Refused, namespaceOf(ctx))
	}
}

// shownTo is showOutcomes for the error of a read.
func shownTo(ctx context.Context, err error) error {
	if refused, isRefusal := err.(*quota.Error); isRefusal { //nolint:errorlint // a read wraps none
		return wire.ToReader(refused, namespaceOf(ctx))
	}
	return err
}

// refusalOrNil avoids an error interface that holds a nil pointer.
func refusalOrNil(e *quota.Error) error {
	if e == nil {
		return nil
	}
	return e
}
