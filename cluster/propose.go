package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// entriesInFlight is how many entries may be on their way to a majority at once. While they are, callers gather into
// the next one, which is what makes entries large exactly when there is much to do.
const entriesInFlight = 4

// Propose carries commands out through the log, in order, and returns an outcome for each, with the index of the entry
// that holds the last of them. Commands of one call share one entry if they are few and small; a large call is spread over
// several, each applied as a whole, and small calls pass it. Only the established leader proposes; others answer NotLeader or NoLeader.
//
// A refusal of the ledger is an outcome. An error is an *Error: unless it says NotApplied, any part of the commands may
// have taken effect or may still; the caller retries with the same ids.
func (n *Node) Propose(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return n.propose(ctx, commands, false)
}

// ProposeSoon is Propose for what is small, comes often, and need not be carried out at once, such as renewals: it waits up
// to 50 ms for company, so that many callers cost few entries.
func (n *Node) ProposeSoon(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	return n.propose(ctx, commands, true)
}

func (n *Node) propose(ctx context.Context, commands []quota.Command, patient bool) ([]ledger.Outcome, uint64, error) {
	if err := n.serving(); err != nil {
		return nil, 0, err
	}
	l := n.life.Load()
	if l == nil {
		return nil, 0, n.refuseToLead()
	}
	return l.propose(ctx, commands, patient)
}

func (l *life) propose(ctx context.Context, commands []quota.Command, patient bool) ([]ledger.Outcome, uint64, error) {
	if err := l.node.hasRoom(commands); err != nil {
		return nil, 0, err
	}
	proposals, err := divide(commands)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range proposals {
		p.late, p.passesNone = ctx.Err, slices.ContainsFunc(commands, isExpiry)
		if err := l.node.admits(p.part.Format); err != nil {
			return nil, 0, err
		}
	}
	if err := l.queue.put(proposals, patient); err != nil {
		return nil, 0, err
	}
	return l.collect(ctx, proposals)
}

// isExpiry is true for what ends leases: no renewal that came before it may come after it in the log.
func isExpiry(c quota.Command) bool {
	_, is := c.(quota.Expire)
	return is
}

func (n *Node) refuseToLead() *Error {
	leader, known := n.Leader()
	if !known {
		return failure(NoLeader, true, nil, "no leader is established that node %s knows of; try again", n.config.ID)
	}
	e := failure(NotLeader, true, nil, "node %s does not lead; ask %s", n.config.ID, leader.ID)
	e.Leader = leader.ID
	return e
}

// divide cuts commands into proposals that fit into an entry each, and encodes them, on the caller's goroutine. What is larger
// than largestPart is divided too, so that nobody waits long behind it.
func divide(commands []quota.Command) ([]*proposal, error) {
	if len(commands) == 0 {
		return nil, failure(TooLarge, true, nil, "a proposal needs at least one command")
	}
	pieces := 2
	if len(commands) <= fsm.MaxEntryCommands {
		part, err := fsm.EncodeCommands(commands)
		size := len(part.Data) + entryOverhead
		switch {
		case err == nil && (size <= largestPart || len(commands) == 1 && size <= fsm.MaxEntryBytes):
			return []*proposal{{commands: len(commands), part: part, done: make(chan result, 1)}}, nil
		case len(commands) == 1:
			return nil, failure(TooLarge, true, err, "one command takes more than the %d bytes of a log entry; divide it",
				fsm.MaxEntryBytes-entryOverhead)
		}
		pieces = max(pieces, 1+size/largestPart)
	}
	var all []*proposal
	for piece := range slices.Chunk(commands, (len(commands)+pieces-1)/pieces) {
		proposals, err := divide(piece)
		if err != nil {
			return nil, err
		}
		all = append(all, proposals...)
	}
	return all, nil
}

// collect waits for all proposals of one call.
func (l *life) collect(ctx context.Context, proposals []*proposal) ([]ledger.Outcome, uint64, error) {
	var outcomes []ledger.Outcome
	var way EntryReport
	for i, p := range proposals {
		r := l.await(ctx, p)
		if r.err != nil {
			return nil, 0, l.abandon(proposals, i, r.err)
		}
		outcomes = append(outcomes, r.outcomes...)
		way = r.way
	}
	tellPassage(ctx, way)
	return outcomes, way.Index, nil
}

func (l *life) await(ctx context.Context, p *proposal) result {
	select {
	case r := <-p.done:
		return r
	case <-ctx.Done():
	}
	if l.queue.withdraw(p) {
		return result{err: tooLate(ctx.Err())}
	}
	select {
	case r := <-p.done: // both came at once, or the queue has seen it first
		return r
	default:
	}
	return result{err: failure(Deadline, false, ctx.Err(),
		"the commands were written but not confirmed in time; they may still take effect: retry with the same id")}
}

// abandon withdraws what waits behind a failed proposal. The whole call is certainly not applied only if that holds for
// its first part: then the later parts were not taken either, or are withdrawn here.
func (l *life) abandon(proposals []*proposal, failed int, err error) error {
	certain := failed == 0
	for _, p := range proposals[failed+1:] {
		if !l.queue.withdraw(p) {
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

// gather puts what waits into one entry after the other until the leadership ends.
func (l *life) gather() {
	slots := make(chan struct{}, entriesInFlight)
	for {
		select {
		case slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		batch := l.next()
		if batch == nil {
			return
		}
		l.send(batch, func() {
			l.queue.entryEnded(batch)
			<-slots
		})
	}
}

// next waits for something to propose; nil when the leadership ended.
func (l *life) next() []*proposal {
	for {
		if batch := l.queue.take(); len(batch) > 0 {
			return batch
		}
		select {
		case <-l.queue.filled:
		case <-l.ctx.Done():
			return nil
		}
	}
}

// send hands one entry to raft. Entries go in one by one, so their stamps are in the order of the log.
func (l *life) send(batch []*proposal, release func()) {
	parts := make([]fsm.Part, len(batch))
	for i, p := range batch {
		parts[i] = p.part
	}
	data, err := fsm.JoinEntry(l.clock.stamp(), parts...)
	if err != nil {
		refuse(batch, failure(TooLarge, true, err, "the commands cannot be written as a log entry"))
		release()
		return
	}
	way := EntryReport{Calls: len(batch), Bytes: len(data), Queued: batch[0].queued, Sent: time.Now()}
	future := l.node.raft.Apply(data, l.node.config.scaled(stepTimeout))
	started := l.tasks.start(func() {
		defer release()
		l.deliver(batch, way, future)
	})
	if !started {
		l.deliver(batch, way, future)
	}
}

// deliver waits for raft's answer to one entry, tells the observer, and gives every caller its part.
func (l *life) deliver(batch []*proposal, way EntryReport, future raft.ApplyFuture) {
	done, failed := l.confirmed(future)
	way.Ended = time.Now()
	for _, p := range batch {
		way.Commands += p.commands
	}
	if failed != nil {
		way.Err = failed
		l.node.config.Observer.EntryEnded(way)
		refuse(batch, failed)
		return
	}
	way.Index, way.ApplyBegan, way.ApplyEnded = future.Index(), done.began, done.ended
	l.node.config.Observer.EntryEnded(way)
	outcomes := done.outcomes
	for _, p := range batch {
		own := p.commands
		p.done <- result{outcomes: outcomes[:own:own], way: way}
		outcomes = outcomes[own:]
	}
}

// confirmed waits for raft's answer to one entry.
func (l *life) confirmed(future raft.ApplyFuture) (applied, *Error) {
	if err := future.Error(); err != nil {
		return applied{}, l.node.fromRaft(err)
	}
	done, ok := future.Response().(applied)
	if !ok {
		cause, _ := future.Response().(error)
		return applied{}, failure(Halted, false, cause, "node %s stopped while it applied the entry", l.node.config.ID)
	}
	return done, nil
}

func refuse(batch []*proposal, err *Error) {
	for _, p := range batch {
		p.done <- result{err: err}
	}
}
