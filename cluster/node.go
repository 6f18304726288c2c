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

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
)

// Node is one running member of a cluster. All methods are safe for concurrent use.
type Node struct {
	config    Config
	started   time.Time
	parts     Parts
	log       hclog.Logger
	ledger    *fsm.FSM
	raft      *raft.Raft
	logs      raft.LogStore
	stable    raft.StableStore
	guard     *raftguard.Transport
	pace      *raftguard.Pace
	disk      atomic.Pointer[Disk]
	newcomer  newcomer
	directory *directory
	horizon   horizon

	// life is the established leadership of this node; nil while it does not lead.
	life    atomic.Pointer[life]
	notify  chan bool
	changed broadcast
	remote  atomic.Pointer[RemoteReadIndex]
	others  atomic.Pointer[Colleagues]
	asks    *rounds
	caught  atomic.Bool
	// reach is which members say how they stand, confirms which of them confirm reads as leaders.
	reach, confirms *reachability
	// waits is what a node without a cluster waits for; nil once it has one.
	waits atomic.Pointer[string]
	// answers are what the other nodes say of themselves; gossiped wakes those who wait for news from gossip.
	answers *answers
	// admitted are the ids of nodes that this one has admitted as members (AdmitsNode).
	admitted      sync.Map
	gossiped      broadcast
	warnedOfLevel atomic.Bool
	// checkpoints compare this node's state with those of the others.
	checkpoints *checkpoints
	// restoring is held while this node replaces the state.
	restoring sync.Mutex

	// ctx lives until the node stops serving; tasks are the goroutines under it.
	ctx    context.Context //nolint:containedctx // it is the life of the node
	cancel context.CancelFunc
	tasks  tasks

	faultOnce sync.Once
	fatal     atomic.Pointer[error]
	stopping  atomic.Bool
	stopOnce  sync.Once
	stopErr   error
	halted    sync.Once
	opened    chan struct{} // closed when Open has succeeded
	done      chan struct{}
}

// Open starts a node from its parts, which it owns from then on, also if it fails. It returns before a leader is known;
// ctx bounds only the start. A node with BootstrapExpect forms a cluster in the background.
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
		return nil, fmt.Errorf("start node %s: its transport is known as %s, but RaftAdvertise is %s", config.ID, local, config.RaftAdvertise)
	}
	n := newNode(config, parts)
	if err := n.start(); err != nil {
		n.cancel()
		return nil, fmt.Errorf("start node %s: %w", config.ID, err)
	}
	close(n.opened)
	return n, nil
}

func newNode(config Config, parts Parts) *Node {
	n := &Node{
		config: config, parts: parts, log: config.Logger.Named("cluster"), started: time.Now(),
		opened: make(chan struct{}), done: make(chan struct{}), answers: newAnswers(),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	// raft blocks when this channel is full; watchLeadership always drains it, so the room only absorbs bursts.
	n.notify = make(chan bool, 16)
	n.asks = &rounds{ask: n.askLeader, spawn: n.tasks.start, ended: n.roundEnded(false)}
	n.reach = newReachability(config, "cannot be asked how it stands")
	n.confirms = newReachability(config, "leads and does not confirm reads")
	n.checkpoints = newCheckpoints()
	n.ledger = fsm.New(fsm.Options{
		Bounds: config.Bounds, OnHalt: func(err error) { go n.fail(err) }, OnCheckpoint: n.checkpoints.take,
	})
	return n
}

func (n *Node) start() error {
	if err := quarantined(n.parts.Stable); err != nil {
		n.stopServing(err, true)
	}
	hasState, err := n.startRaft()
	if err != nil {
		return errors.Join(err, n.newcomer.close())
	}
	n.directory = newDirectory(n.parts.Discovery, n.introduce(hasState))
	if err := n.parts.Discovery.Start(n.directory.me()); err != nil {
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	n.startTasks(hasState)
	return nil
}

func (n *Node) introduce(hasState bool) Peer {
	return Peer{
		ID: n.config.ID, RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, Version: n.config.Version,
		FeatureLevel: fsm.EntryFormat, Expect: n.config.BootstrapExpect, HasState: hasState || n.newcomer.lost != "", Alive: true,
	}
}

func (n *Node) startTasks(hasState bool) {
	n.tasks.start(n.watchLeadership)
	n.tasks.start(n.watchChanges)
	n.tasks.start(n.watchReadiness)
	n.tasks.start(n.probeLeader)
	n.tasks.start(n.sumUp)
	n.tasks.start(n.pollPeers)
	n.tasks.start(n.watchDisk)
	n.tasks.start(n.watchCandidacy)
	if hasState {
		n.tasks.start(n.hasten)
	} else {
		n.tasks.start(n.bootstrap)
	}
}

// watchChanges wakes whoever waits for a leader or a peer, whenever raft or gossip has news.
func (n *Node) watchChanges() {
	news := make(chan raft.Observation, 1)
	observer := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	for {
		n.directory.refresh()
		n.gossiped.wake()
		n.changed.wake()
		select {
		case <-news:
		case <-n.parts.Discovery.Changed():
		case <-n.ctx.Done():
			n.changed.wake()
			return
		}
	}
}

// Done is closed when the node has stopped: after Shutdown, or by itself for the reason that Err tells.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is the fault that stopped the node, with the way out; nil while all is well and after an ordinary Shutdown.
func (n *Node) Err() error { return n.fault() }

func (n *Node) fault() error {
	if err := n.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

// serving is nil while the node may answer.
func (n *Node) serving() error {
	if err := n.fault(); err != nil {
		return failure(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	if n.stopping.Load() || n.ctx.Err() != nil {
		return failure(ShuttingDown, true, nil, "node %s is shutting down; ask another one", n.config.ID)
	}
	return nil
}

// after waits for d, or answers false at once when ctx ends first.
func after(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
