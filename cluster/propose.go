package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// entriesInFlight is how many entries may be in flight at once. Meanwhile proposals accumulate for the next entry,
// which makes entries large exactly when there is much to do; see overlapCommands.
const entriesInFlight = 4

// Propose applies commands in order through the log. It returns an outcome for each command, and the index of the entry
// that contains the last one. The commands of one call share one entry if they are few and small; a large call is split
// into several entries, each applied atomically, and small calls can overtake it. Only the established leader accepts
// proposals; other nodes return NotLeader or NoLeader.
//
// The commands have the caller that WithCaller put into the context, or none. A refusal by the ledger is an outcome. An
// error is an *Error: unless it says NotApplied, any of the commands may have taken effect or may still do so, and the
// caller should retry with the same ids.
func (n *Node) Propose(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return n.propose(ctx, commands, false)
}

// ProposeBatched is Propose for small, frequent commands that need not be applied at once, such as renewals: it waits
// up to 50 ms for other proposals, so that many callers share few entries.
func (n *Node) ProposeBatched(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return n.propose(ctx, commands, true)
}

func (n *Node) propose(ctx context.Context, commands []quota.Command, batched bool) ([]ledger.Outcome, uint64, error) {
	l, err := n.leader.established()
	if err != nil {
		return nil, 0, err
	}
	return l.commit.propose(ctx, commands, batched)
}

// groupCommit gathers the proposals of many callers into few log entries.
type groupCommit struct {
	self      string
	timeouts  timeoutScale
	formats   *fsm.Formats
	observer  Observer
	ctx       context.Context //nolint:containedctx // that of the leadership
	tasks     *taskGroup
	suspended <-chan struct{} // see leadership
	raft      *raft.Raft
	ledger    *fsm.FSM
	leader    *leaderFinder
	disk      *diskMonitor
	levels    *levels
	queue     *proposalQueue
	clock     *ledgerClock // nil until the leadership is established
}

func (g *groupCommit) propose(ctx context.Context, commands []quota.Command,
	batched bool,
) ([]ledger.Outcome, uint64, error) {
	if err := g.disk.checkSpace(commands); err != nil {
		return nil, 0, err
	}
	proposals, err := splitCommands(g.formats, callerOf(ctx), commands)
	if err != nil {
		return nil, 0, err
	}
	user := chargedUser(ctx, g.ledger.Book())
	for _, p := range proposals {
		p.user = user
		p.callerErr, p.keepsOrder = ctx.Err, slices.ContainsFunc(commands, keepsOrder)
		if err := g.levels.check(p.part.Format); err != nil {
			return nil, 0, err
		}
	}
	if err := g.queue.enqueue(proposals, batched); err != nil {
		return nil, 0, err
	}
	return g.collectOutcomes(ctx, proposals)
}

// proposePart returns the index of the entry.
func (g *groupCommit) proposePart(ctx context.Context, part fsm.Part) (uint64, error) {
	p := &proposal{part: part, done: make(chan proposalResult, 1), callerErr: ctx.Err}
	if err := g.queue.enqueue([]*proposal{p}, false); err != nil {
		return 0, err
	}
	r := g.awaitResult(ctx, p)
	return r.report.Index, r.err
}

func keepsOrder(c quota.Command) bool { return quota.FactsOf(c).KeepsOrder }

// splitCommands encodes the commands of a caller, nil for none, into proposals that each fit into one entry. It runs on
// the goroutine of the call. Calls larger than largestPart are split too, so that proposals behind them do not wait
// long.
func splitCommands(formats *fsm.Formats, caller *access.Caller, commands []quota.Command) ([]*proposal, error) {
	if len(commands) == 0 {
		return nil, newError(TooLarge, true, nil, "a proposal needs at least one command")
	}
	pieces := 2
	if len(commands) <= fsm.MaxEntryCommands {
		part, err := formats.EncodeCommands(caller, commands)
		size := part.Size() + entryOverhead
		switch {
		case err == nil && (size <= largestPart || len(commands) == 1 && size <= fsm.MaxEntryBytes):
			return []*proposal{{commands: len(commands), part: part, done: make(chan proposalResult, 1)}}, nil
		case len(commands) == 1 && err != nil:
			return nil, newError(TooLarge, true, err, "the command cannot be written as a log entry")
		case len(commands) == 1:
			return nil, newError(TooLarge, true, nil,
				"one command takes more than the %d bytes of a log entry; divide it",
				fsm.MaxEntryBytes-entryOverhead)
		}
		pieces = max(pieces, 1+size/largestPart)
	}
	var all []*proposal
	for piece := range slices.Chunk(commands, (len(commands)+pieces-1)/pieces) {
		proposals, err := splitCommands(formats, caller, piece)
		if err != nil {
			return nil, err
		}
		all = append(all, proposals...)
	}
	return all, nil
}

func (g *groupCommit) collectOutcomes(ctx context.Context, proposals []*proposal) ([]ledger.Outcome, uint64, error) {
	var outcomes []ledger.Outcome
	var report EntryReport
	for i, p := range proposals {
		r := g.awaitResult(ctx, p)
		if r.err != nil {
			return nil, 0, g.withdrawRest(proposals, i, r.err)
		}
		outcomes = append(outcomes, r.outcomes...)
		report = r.report
	}
	fillEntryReport(ctx, report)
	return outcomes, report.Index, nil
}

func (g *groupCommit) awaitResult(ctx context.Context, p *proposal) proposalResult {
	select {
	case r := <-p.done:
		return r
	case <-g.suspended:
		return g.suspendedResult(p)
	case <-ctx.Done():
	}
	if g.queue.withdraw(p) {
		return proposalResult{err: notWrittenError(ctx.Err())}
	}
	select {
	case r := <-p.done: // the result arrived at the same time, or the queue refused it first
		return r
	default:
	}
	return proposalResult{err: newError(Deadline, false, ctx.Err(),
		"the commands were written but not confirmed in time; they may still take effect: retry with the same id")}
}

// suspendedResult is the result of a proposal that raft was given before this node stopped to act as leader.
func (g *groupCommit) suspendedResult(p *proposal) proposalResult {
	select {
	case r := <-p.done:
		return r
	default:
	}
	return proposalResult{err: newError(LeadershipLost, false, nil,
		"a write to the log of node %s does not return, so it stopped to act as leader; the commands may still take "+
			"effect: retry with the same id", g.self)}
}

// withdrawRest withdraws the proposals that wait behind a failed one. The whole call is certainly not applied only if
// its first part was not: then the later parts either were not taken or are withdrawn here.
func (g *groupCommit) withdrawRest(proposals []*proposal, failed int, err error) error {
	certain := failed == 0
	for _, p := range proposals[failed+1:] {
		if !g.queue.withdraw(p) {
			certain = false
		}
	}
	var e *Error
	if errors.As(err, &e) && e.NotApplied && !certain {
		unknown := *e
		unknown.NotApplied = false
		return &unknown
	}
	return err
}

func (g *groupCommit) run() {
	slots := make(chan struct{}, entriesInFlight)
	for {
		select {
		case slots <- struct{}{}:
		case <-g.ctx.Done():
			return
		}
		batch := g.nextBatch(func() bool { return len(slots) > 1 })
		if batch == nil {
			return
		}
		g.sendEntry(batch, func() {
			<-slots // first, because entryEnded makes run look how many entries are in flight
			g.queue.entryEnded(batch)
		})
	}
}

// nextBatch waits for proposals that may go now, which depends on whether another entry is in flight. It returns nil
// when the leadership has ended.
func (g *groupCommit) nextBatch(inFlight func() bool) []*proposal {
	for {
		take := g.queue.takeBatch
		if inFlight() {
			take = g.queue.takeOverlapping
		}
		if batch := take(); len(batch) > 0 {
			return batch
		}
		select {
		case <-g.queue.ready:
		case <-g.ctx.Done():
			return nil
		}
	}
}

// sendEntry gives one entry to raft. There is one sender, so stamps are in the order of the log.
func (g *groupCommit) sendEntry(batch []*proposal, release func()) {
	parts := make([]fsm.Part, len(batch))
	for i, p := range batch {
		parts[i] = p.part
	}
	data, err := fsm.JoinEntry(g.clock.nextStamp(), parts...)
	if err != nil {
		refuseAll(batch, newError(TooLarge, true, err, "the commands cannot be written as a log entry"))
		release()
		return
	}
	report := EntryReport{Calls: len(batch), Bytes: len(data), Queued: batch[0].queued, Sent: time.Now()}
	future := g.raft.Apply(data, g.timeouts.scale(stepTimeout))
	started := g.tasks.start(func() {
		defer release()
		g.deliverResults(batch, report, future)
	})
	if !started {
		g.deliverResults(batch, report, future)
	}
}

// deliverResults waits for raft's answer to one entry, reports the entry to the observer, and gives each caller its
// outcomes.
func (g *groupCommit) deliverResults(batch []*proposal, report EntryReport, future raft.ApplyFuture) {
	done, failed := g.awaitApply(future)
	report.Ended = time.Now()
	for _, p := range batch {
		report.Commands += p.commands
	}
	if failed != nil {
		report.Err = failed
		g.observer.EntryEnded(report)
		refuseAll(batch, failed)
		return
	}
	report.Index, report.ApplyBegan, report.ApplyEnded = future.Index(), done.began, done.ended
	g.observer.EntryEnded(report)
	outcomes := done.outcomes
	for _, p := range batch {
		own := p.commands
		p.done <- proposalResult{outcomes: outcomes[:own:own], report: report}
		outcomes = outcomes[own:]
	}
}

func (g *groupCommit) awaitApply(future raft.ApplyFuture) (applyResponse, *Error) {
	if err := future.Error(); err != nil {
		return applyResponse{}, g.leader.applyError(err)
	}
	done, ok := future.Response().(applyResponse)
	if !ok {
		cause, _ := future.Response().(error)
		return applyResponse{}, newError(Halted, false, cause, "node %s stopped while it applied the entry",
			g.self)
	}
	return done, nil
}

func refuseAll(batch []*proposal, err *Error) {
	for _, p := range batch {
		p.done <- proposalResult{err: err}
	}
}
