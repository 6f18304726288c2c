package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/fsm"
)

// leaderRetry is the pause before another attempt to establish a leadership or to correct an address.
const leaderRetry = time.Second

// leadership is one period of leadership of this node, under one context.
type leadership struct {
	leaderParts

	ctx    context.Context //nolint:containedctx // it ends with the leadership
	cancel context.CancelFunc
	tasks  taskGroup

	term      uint64
	startedAt time.Time
	// suspended is closed when this node stopped to act as leader although raft still leads; see suspend.
	suspended chan struct{}
	commit    *groupCommit
	reads     *readBatcher

	// What follows exists once the leadership is established.

	clock   *ledgerClock
	health  *prober
	servers *configChanger
	quorum  *quorumRules
	civil   *civilClock
	expiry  *expiry
}

type leaderParts struct {
	config      Config
	log         hclog.Logger
	ledger      *fsm.FSM
	zones       *recurrence.Zones
	service     *service
	raft        *raft.Raft
	logs        raft.LogStore
	lastCommand *lastCommandIndex
	transport   *raftguard.Transport
	roster      *peers.Roster
	leader      *leaderFinder
	elections   *elections
	disk        *diskMonitor
	levels      *levels
	times       *timeSource
	checkpoints *checkpoints
	poller      *poller
	changes     *changeNotifier
}

type leadershipWatcher struct {
	leaderParts

	// elected receives every gain and loss of the leadership in order. raft blocks while it is full, so run always drains
	// it, and its buffer only absorbs bursts.
	elected <-chan bool
}

// run begins and ends leaderships. raft reports every gain and loss in order, so a leadership that is lost
// and regained at once yields two values of leadership that share nothing.
func (w *leadershipWatcher) run() {
	var current *leadership
	defer func() { w.end(current) }()
	for {
		select {
		case leading := <-w.elected:
			w.end(current)
			current = nil
			if leading && w.service.fault() == nil {
				current = w.begin()
			}
		case <-w.disk.stallChanged:
			current = w.followStall(current)
		case <-w.service.ctx.Done():
			return
		}
	}
}

func (w *leadershipWatcher) begin() *leadership {
	l := &leadership{
		leaderParts: w.leaderParts, term: w.raft.CurrentTerm(), startedAt: time.Now(), suspended: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(w.service.ctx)
	l.commit = &groupCommit{
		self: l.config.ID, timeouts: l.config.timeouts(), formats: l.config.Formats, observer: l.config.Observer,
		ctx: l.ctx, tasks: &l.tasks, suspended: l.suspended, raft: l.raft, ledger: l.ledger, leader: l.leader,
		disk: l.disk, levels: l.levels, queue: newProposalQueue(),
	}
	proof := &leaderProof{
		self: l.config.ID, ctx: l.ctx, term: l.term, raft: l.raft, transport: l.transport, logs: l.logs,
		lastCommand: l.lastCommand, ledger: l.ledger, roster: l.roster, leader: l.leader,
	}
	l.reads = &readBatcher{
		confirmIndex: proof.confirm, startTask: l.tasks.start,
		observeBatch: observeReadBatch(l.config.Observer, true), abandoned: l.suspended,
	}
	l.tasks.start(l.lead)
	return l
}

// end makes the node refuse leader operations, then waits until all tasks of the leadership have ended. raft
// answers all futures of a leader that stepped down, so this takes no longer than the leader lease.
func (w *leadershipWatcher) end(l *leadership) {
	if l == nil {
		return
	}
	w.leader.own.CompareAndSwap(l, nil)
	l.cancel()
	l.commit.queue.close()
	if err := l.tasks.wait(context.Background()); err != nil {
		w.log.Error("the tasks of a leadership did not end", "error", err)
	}
	w.changes.notifyAll()
	w.log.Info("leadership ended", "term", l.term)
}

// followStall suspends the leadership while the disk is stalled. Once the write has returned, it begins a new one if
// raft still leads, as the only voter always does. It returns the current leadership.
func (w *leadershipWatcher) followStall(current *leadership) *leadership {
	if current == nil {
		return nil
	}
	if w.disk.isStalled() {
		w.suspend(current)
		return current
	}
	if current.ctx.Err() == nil {
		return current
	}
	w.end(current)
	if w.raft.State() != raft.Leader || w.service.fault() != nil {
		return nil
	}
	return w.begin()
}

// suspend makes the node refuse leader operations at once. Unlike end it does not wait for the
// tasks of the leadership, because those that wait for raft end only when the write returns, and it answers the callers
// whose commands raft has.
func (w *leadershipWatcher) suspend(l *leadership) {
	if l.ctx.Err() != nil {
		return
	}
	w.leader.own.CompareAndSwap(l, nil)
	l.cancel()
	l.commit.queue.close()
	close(l.suspended)
	w.changes.notifyAll()
	w.log.Error("this node stops to act as leader, because its disk does not answer", "term", l.term)
}

// lead establishes the leadership, then runs its tasks. It proposes what is queued until the leadership ends.
func (l *leadership) lead() {
	if !l.establish() {
		return
	}
	tasks := l.buildTasks()
	l.leader.own.Store(l)
	if l.ctx.Err() != nil {
		l.leader.own.CompareAndSwap(l, nil)
		return
	}
	l.changes.notifyAll()
	l.config.Observer.LeadershipEstablished()
	l.log.Info("leadership established", "term", l.term, "ledger-time", l.ledger.Now())
	for _, task := range tasks {
		l.tasks.start(task)
	}
	l.commit.run()
}

// buildTasks builds the components of the established leadership and returns what they run.
func (l *leadership) buildTasks() []func() {
	timeouts := l.config.timeouts()
	l.commit.clock = l.clock
	l.health = &prober{
		self: l.config.ID, ctx: l.ctx, term: l.term, startedAt: l.startedAt, raft: l.raft, clock: l.clock,
		zones: l.zones, times: l.times, roster: l.roster, leader: l.leader, poller: l.poller,
		table: healthTable{checks: map[string]HealthCheck{}, firstProbe: make(chan struct{})},
	}
	l.servers = &configChanger{
		timeouts: timeouts, log: l.log, ctx: l.ctx, tasks: &l.tasks, raft: l.raft, ledger: l.ledger, roster: l.roster,
		leader: l.leader, changes: l.changes, lock: make(chan struct{}, 1),
	}
	l.quorum = &quorumRules{startedAt: l.startedAt, least: l.config.MinQuorum}
	l.civil = &civilClock{
		log: l.log, ctx: l.ctx, clock: l.clock, times: l.times, health: l.health, commit: l.commit,
	}
	l.expiry = &expiry{
		timeouts: timeouts, log: l.log, ctx: l.ctx, service: l.service, ledger: l.ledger, clock: l.clock,
		clockMoved: make(chan struct{}, 1), commit: l.commit,
	}
	pilot := &autopilot{
		self: l.config.ID, manual: l.config.ManualJoin, stableAfter: l.config.StabilizationTime,
		removeDeadAfter: l.config.RemoveDeadAfter, timeouts: timeouts, log: l.log, ctx: l.ctx,
		startedAt: l.startedAt, raft: l.raft, transport: l.transport, elections: l.elections, disk: l.disk,
		poller: l.poller, reads: l.reads, health: l.health, servers: l.servers, quorum: l.quorum, civil: l.civil,
	}
	windows := &windowExtender{
		log: l.log, ctx: l.ctx, zones: l.zones, ledger: l.ledger, times: l.times, commit: l.commit,
	}
	tasks := []func(){l.servers.correctAddresses, l.expiry.run, windows.run}
	if after := l.config.RaiseLevelAfter; after > 0 {
		raiser := &levelRaiser{
			log: l.log, ctx: l.ctx, startedAt: l.startedAt, after: after, ledger: l.ledger, levels: l.levels,
			changes: l.changes, commit: l.commit,
		}
		tasks = append(tasks, raiser.run)
	}
	if every := l.config.CheckpointEvery; every > 0 {
		writer := &checkpointWriter{
			log: l.log, ctx: l.ctx, every: every, ledger: l.ledger, checkpoints: l.checkpoints, commit: l.commit,
		}
		tasks = append(tasks, writer.run)
	}
	return append(tasks, pilot.run)
}

// establish waits until the ledger contains everything that earlier leaders committed, and starts the clock at the
// ledger's time. If that fails, it transfers the leadership and tries again.
func (l *leadership) establish() bool {
	for {
		err := l.raft.Barrier(0).Error()
		if err == nil {
			err = l.abandonReplacement(l.ledger.Replacing())
		}
		if l.ctx.Err() != nil {
			return false
		}
		if err == nil {
			l.clock = startClock(l.ledger.Now())
			return true
		}
		l.log.Warn("cannot establish the leadership, transferring it", "term", l.term, "error", err)
		if err := l.raft.LeadershipTransfer().Error(); err != nil {
			l.log.Warn("cannot transfer the leadership", "error", err)
		}
		if !sleepContext(l.ctx, leaderRetry) {
			return false
		}
	}
}
