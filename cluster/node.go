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
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/fsm"
)

// Node is one running member of a cluster. All methods are safe for concurrent use.
type Node struct {
	config      Config
	started     time.Time
	parts       Parts
	log         hclog.Logger
	ledger      *fsm.FSM
	zones       *recurrence.Zones
	raft        *raft.Raft
	logs        raft.LogStore
	stable      raft.StableStore
	transport   *raftguard.Transport
	diskLatency *raftguard.DiskLatency
	logSize     *raftguard.LogSize
	diskStatus  atomic.Pointer[DiskStatus]
	// handedOver is set once this node has handed the leadership over because of its disk, until that is good again.
	handedOver  atomic.Bool
	joiner      joiner
	directory   *peerDirectory
	lastCommand lastCommandIndex

	// leadership is the established leadership of this node; nil while it does not lead.
	leadership   atomic.Pointer[leadership]
	leadershipCh chan bool
	// stallChanged receives a value when a write to the log began to hang, or has returned.
	stallChanged    chan struct{}
	changes         changeNotifier
	remoteReadIndex atomic.Pointer[RemoteReadIndex]
	leaderTime      atomic.Pointer[leaderTime]
	peerClient      atomic.Pointer[PeerClient]
	followerReads   *readBatcher
	caughtUp        atomic.Bool
	// statusReachability tracks which members answer status queries, readReachability which leaders confirm reads.
	statusReachability, readReachability *reachability
	// bootstrapWait is what a node without a cluster waits for; nil once it has one.
	bootstrapWait atomic.Pointer[string]
	// answers hold what the other nodes report about themselves. gossipChanges is notified of news from gossip.
	answers *peerAnswers
	// knownMembers are the ids of nodes that this node has accepted as members (AuthorizePeer).
	knownMembers     sync.Map
	gossipChanges    changeNotifier
	warnedAboutLevel atomic.Bool
	// checkpoints compare this node's state with that of the others.
	checkpoints *checkpoints
	// restoreLock is held while this node replaces the state.
	restoreLock sync.Mutex

	// ctx ends when the node stops serving; tasks are the goroutines under it.
	ctx    context.Context //nolint:containedctx // it ends with the node
	cancel context.CancelFunc
	tasks  taskGroup

	faultOnce sync.Once
	fatal     atomic.Pointer[error]
	stopping  atomic.Bool
	stopOnce  sync.Once
	stopErr   error
	closeDone sync.Once
	opened    chan struct{} // closed when Open has succeeded
	done      chan struct{}
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
		n.cancel()
		return nil, fmt.Errorf("start node %s: %w", config.ID, err)
	}
	close(n.opened)
	return n, nil
}

func newNode(config Config, parts Parts) *Node {
	n := &Node{
		config: config, parts: parts, log: config.Logger.Named("cluster"), started: time.Now(),
		opened: make(chan struct{}), done: make(chan struct{}), answers: newPeerAnswers(),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	// raft blocks while this channel is full. watchLeadership always drains it, so the buffer only absorbs bursts.
	n.leadershipCh = make(chan bool, 16)
	n.stallChanged = make(chan struct{}, 1)
	n.followerReads = &readBatcher{
		confirmIndex: n.requestReadIndex, startTask: n.tasks.start,
		observeBatch: n.observeReadBatch(false),
	}
	n.statusReachability = newReachability(config, "cannot be asked how it stands")
	n.readReachability = newReachability(config, "leads and does not confirm reads")
	n.checkpoints = newCheckpoints()
	n.ledger = fsm.New(fsm.Options{
		Bounds: config.Bounds, Formats: config.Formats, OnHalt: func(err error) { go n.fail(err) },
		OnCheckpoint: n.checkpoints.queueDigest,
	})
	return n
}

func (n *Node) start() error {
	if err := quarantineFault(n.parts.Stable); err != nil {
		n.stopServing(err, true)
	}
	hasState, err := n.startRaft()
	if err != nil {
		return errors.Join(err, n.joiner.close())
	}
	n.directory = newPeerDirectory(n.parts.Discovery, n.selfPeer(hasState))
	if err := n.parts.Discovery.Start(n.directory.ownPeer()); err != nil {
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	n.startTasks(hasState)
	return nil
}

func (n *Node) selfPeer(hasState bool) Peer {
	return Peer{
		ID: n.config.ID, RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, Version: n.config.Version,
		FeatureLevel: n.config.Formats.Newest(), Expect: n.config.BootstrapExpect, HasState: hasState || n.joiner.lost != "",
		Alive: true,
	}
}

func (n *Node) startTasks(hasState bool) {
	n.tasks.start(n.watchLeadership)
	n.tasks.start(n.watchChanges)
	n.tasks.start(n.watchReadiness)
	n.tasks.start(n.probeLeader)
	n.tasks.start(n.digestCheckpoints)
	n.tasks.start(n.pollPeers)
	n.tasks.start(n.watchDisk)
	if n.config.DiskStall > 0 {
		n.tasks.start(n.watchStall)
	}
	n.tasks.start(n.watchPromotion)
	if n.config.SnapshotBytes > 0 {
		n.tasks.start(n.watchLogSize)
	}
	if hasState {
		n.tasks.start(n.electSoleVoter)
	} else {
		n.tasks.start(n.runBootstrap)
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
		n.directory.refreshPeers()
		n.gossipChanges.notifyAll()
		n.changes.notifyAll()
		select {
		case <-news:
		case <-n.parts.Discovery.Changed():
		case <-n.ctx.Done():
			n.changes.notifyAll()
			return
		}
	}
}

// Done is closed when the node has stopped, after Shutdown or because of the fault that Err returns.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns the fault that stopped the node and what to do about it; nil if there is none, also after Shutdown.
func (n *Node) Err() error { return n.fault() }

func (n *Node) fault() error {
	if err := n.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

// checkServing returns an error if the node must not serve requests.
func (n *Node) checkServing() error {
	if err := n.fault(); err != nil {
		return newError(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	if n.stopping.Load() || n.ctx.Err() != nil {
		return newError(ShuttingDown, true, nil, "node %s is shutting down; ask another one", n.config.ID)
	}
	return nil
}

// sleepContext waits for d. It returns false at once when ctx ends first.
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
