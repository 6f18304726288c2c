package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/fsm"
)

// Node is one running member of a cluster. All methods are safe for concurrent use.
//
// Node starts and stops its components and has the public calls; what it does between them is in the components. Each
// has the others that it needs, by name.
type Node struct {
	config Config
	parts  Parts
	log    hclog.Logger
	ledger *fsm.FSM
	zones  *recurrence.Zones

	// raft is the library on its guarded stores and transport (raft.go).
	raft      *raft.Raft
	logs      *raftguard.LogCache
	logSize   *raftguard.LogSize
	transport *raftguard.Transport
	elected   chan bool // see leadershipWatcher

	service     *service
	changes     *changeNotifier
	answers     *peers.Answers
	directory   *peers.Directory
	roster      *peers.Roster
	leader      *leaderFinder
	elections   *elections
	disk        *diskMonitor
	levels      *levels
	times       *timeSource
	checkpoints *checkpoints
	comparison  *comparison
	poller      *poller
	reads       *reader
	admission   *admission
	join        *joinState
	joiner      *joiner
	bootstrap   *bootstrapper
	readiness   *readiness
	restorer    *restorer
	tasks       taskGroup

	started   time.Time
	faultOnce sync.Once
	// quarantined is true once the node stopped because a majority holds another state, also before a restart.
	quarantined atomic.Bool
	stopOnce    sync.Once
	stopErr     error
	closeDone   sync.Once
	opened      chan struct{} // closed when Open has succeeded
	done        chan struct{}
}

// Open starts a node from its parts. The node owns the parts from then on and closes them if Open fails. Open returns
// before a leader is known; ctx bounds only the start. A node with BootstrapExpect forms a cluster in the background.
func Open(ctx context.Context, config Config, parts Parts) (*Node, error) {
	if err := parts.validate(); err != nil {
		return nil, errors.Join(err, parts.close())
	}
	n, err := open(ctx, config.WithDefaults(), parts)
	if err != nil {
		closeTransport(parts.Transport)
		return nil, errors.Join(err, parts.Discovery.Close(), parts.close())
	}
	return n, nil
}

func open(ctx context.Context, config Config, parts Parts) (*Node, error) {
	if err := errors.Join(config.Validate(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("start node %s: %w", config.ID, err)
	}
	if local := string(parts.Transport.LocalAddr()); local != config.RaftAdvertise {
		return nil, fmt.Errorf("start node %s: its transport is known as %s, but RaftAdvertise is %s", config.ID, local,
			config.RaftAdvertise)
	}
	zones, err := config.openZones()
	if err != nil {
		return nil, fmt.Errorf("start node %s: %w", config.ID, err)
	}
	n := newNode(config, parts)
	n.zones = zones
	if err := n.start(); err != nil {
		n.service.cancel()
		return nil, fmt.Errorf("start node %s: %w", config.ID, err)
	}
	close(n.opened)
	return n, nil
}

func newNode(config Config, parts Parts) *Node {
	n := &Node{
		config: config, parts: parts, log: config.Logger.Named("cluster"), started: time.Now(),
		service: newService(config.ID), changes: &changeNotifier{}, answers: peers.NewAnswers(maxAnswerAge),
		checkpoints: newCheckpoints(), join: &joinState{},
		elected: make(chan bool, 16), opened: make(chan struct{}), done: make(chan struct{}),
	}
	n.ledger = fsm.New(fsm.Options{
		Bounds: config.Bounds, Formats: config.Formats, OnHalt: func(err error) { go n.fail(err) },
		OnCheckpoint: n.checkpoints.queueDigest,
	})
	return n
}

func (n *Node) start() error {
	if err := quarantineFault(n.parts.Stable); err != nil {
		n.quarantined.Store(true)
		n.stopServing(err, true)
	}
	hasState, err := n.startRaft()
	if err != nil {
		return errors.Join(err, n.join.close())
	}
	n.connectComponents(hasState)
	if err := n.parts.Discovery.Start(n.directory.Own()); err != nil {
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	n.startTasks(hasState)
	return nil
}

// connectComponents builds what needs raft. Raft runs already, but what it calls until the node has opened only uses
// what newNode and startRaft have built.
func (n *Node) connectComponents(hasState bool) {
	self, timeouts := n.config.ID, n.config.timeouts()
	n.directory = peers.NewDirectory(n.parts.Discovery, n.selfPeer(hasState))
	n.roster = peers.NewRoster(self, n.raft, n.directory, n.answers)
	n.leader = &leaderFinder{
		self: self, started: n.started, service: n.service, raft: n.raft, roster: n.roster, answers: n.answers,
		disk: n.disk, changed: n.changes,
	}
	n.elections = &elections{
		self: self, address: n.config.RaftAdvertise, timeouts: timeouts, log: n.log, raft: n.raft,
		transport: n.transport, directory: n.directory, roster: n.roster, leader: n.leader,
	}
	n.levels = &levels{
		self: self, version: n.config.Version, log: n.log, formats: n.config.Formats, ledger: n.ledger,
		roster: n.roster, answers: n.answers,
	}
	n.times = &timeSource{ledger: n.ledger, raft: n.raft, leader: n.leader, answers: n.answers}
	n.comparison = &comparison{
		self: self, log: n.log, checkpoints: n.checkpoints, roster: n.roster, answers: n.answers,
		quarantine: n.quarantine, quarantined: &n.quarantined,
	}
	n.poller = &poller{
		self: self, cluster: n.config.ClusterName, service: n.service, raft: n.raft, discovery: n.parts.Discovery,
		directory: n.directory, answers: n.answers, roster: n.roster, leader: n.leader, disk: n.disk,
		levels: n.levels, times: n.times, checkpoints: n.checkpoints, comparison: n.comparison, changes: n.changes,
		ownStatus:    n.Status,
		reachability: peers.NewReachability(n.config.TimeoutScale, n.log, "cannot be asked how it stands"),
	}
	n.reads = &reader{
		self: self, timeouts: timeouts, service: n.service, raft: n.raft, logs: n.logs, ledger: n.ledger,
		roster: n.roster, leader: n.leader, times: n.times, lastCommand: &lastCommandIndex{},
		reachability: peers.NewReachability(n.config.TimeoutScale, n.log, "leads and does not confirm reads"),
	}
	n.reads.followers = &readBatcher{
		confirmIndex: n.reads.requestReadIndex, startTask: n.tasks.start,
		observeBatch: observeReadBatch(n.config.Observer, false),
	}
	n.admission = &admission{self: self, raft: n.raft, roster: n.roster, leader: n.leader, answers: n.answers}
	n.joiner = &joiner{
		self: self, log: n.log, started: n.started, service: n.service, join: n.join, raft: n.raft, roster: n.roster,
		leader: n.leader, admission: n.admission, changes: n.changes,
	}
	n.bootstrap = &bootstrapper{
		self: self, cluster: n.config.ClusterName, log: n.log, started: n.started, raft: n.raft,
		directory: n.directory, answers: n.answers, join: n.join, elections: n.elections, changes: n.changes,
	}
	n.readiness = &readiness{
		self: self, timeouts: timeouts, service: n.service, raft: n.raft, disk: n.disk, leader: n.leader,
		join: n.join, joiner: n.joiner, bootstrap: n.bootstrap, reads: n.reads, changes: n.changes,
	}
	n.restorer = &restorer{
		self: self, dataDir: n.config.DataDir, bounds: n.config.Bounds, formats: n.config.Formats, ledger: n.ledger,
		disk: n.disk, levels: n.levels,
	}
}

func (n *Node) selfPeer(hasState bool) Peer {
	return Peer{
		ID: n.config.ID, RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, Version: n.config.Version,
		FeatureLevel: n.config.Formats.Newest(), Expect: n.config.BootstrapExpect, HasState: hasState || n.join.lost != "",
		Alive: true,
	}
}

func (n *Node) startTasks(hasState bool) {
	leaderships := &leadershipWatcher{elected: n.elected, leaderParts: leaderParts{
		config: n.config, log: n.log, ledger: n.ledger, zones: n.zones, service: n.service, raft: n.raft, logs: n.logs,
		lastCommand: n.reads.lastCommand, transport: n.transport, roster: n.roster, leader: n.leader,
		elections: n.elections, disk: n.disk, levels: n.levels, times: n.times, checkpoints: n.checkpoints,
		poller: n.poller, changes: n.changes,
	}}
	ctx := n.service.ctx
	under := func(task func(context.Context)) func() { return func() { task(ctx) } }
	n.tasks.start(leaderships.run)
	n.tasks.start(n.watchChanges)
	n.tasks.start(n.readiness.watch)
	n.tasks.start(n.reads.probeLeader)
	n.tasks.start(under(n.comparison.run))
	n.tasks.start(n.poller.run)
	n.tasks.start(under(n.disk.watch))
	if n.config.DiskStall > 0 {
		n.tasks.start(under(n.disk.watchStall))
	}
	n.tasks.start(func() { n.joiner.watchPromotion(n.readiness.check) })
	if n.config.SnapshotBytes > 0 {
		bound := &logBound{
			log: n.log, bytes: n.config.SnapshotBytes, trailing: n.config.TrailingLogs, size: n.logSize, raft: n.raft,
			snapshots: n.parts.Snapshots, snapshot: n.Snapshot,
		}
		n.tasks.start(under(bound.watch))
	}
	if hasState {
		n.tasks.start(n.elections.electSoleVoter)
	} else {
		n.tasks.start(under(n.bootstrap.run))
	}
}

// watchChanges notifies waiters of changes of the leader and of peers, as reported by raft and gossip.
func (n *Node) watchChanges() {
	news := make(chan raft.Observation, 1)
	observer := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	for {
		n.directory.Refresh()
		n.poller.gossipChanges.notifyAll()
		n.changes.notifyAll()
		select {
		case <-news:
		case <-n.parts.Discovery.Changed():
		case <-n.service.ctx.Done():
			n.changes.notifyAll()
			return
		}
	}
}

// Done is closed when the node has stopped, after Shutdown or because of the fault that Err returns.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns the fault that stopped the node and what to do about it; nil if there is none, also after Shutdown.
func (n *Node) Err() error { return n.service.fault() }

// sleepContext is false at once when ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
