package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// leaderRetry is the pause before another attempt to establish a leadership or to correct an address.
const leaderRetry = time.Second

// leadership is one period of leadership of this node, from the election to its loss, under one context.
type leadership struct {
	node   *Node
	ctx    context.Context //nolint:containedctx // it ends with the leadership
	cancel context.CancelFunc
	tasks  taskGroup

	term  uint64
	clock *ledgerClock
	queue *proposalQueue
	// clockMoved receives a value when the clock was moved forward.
	clockMoved chan struct{}
	reads      *readBatcher
	// suspended is closed when this node stopped to act as leader although raft still leads; see suspendLeadership.
	suspended chan struct{}

	startedAt   time.Time
	configLock  configLock
	healthTable healthTable
	// worseDiskSince is since when another voter has had a better disk; only runAutopilot uses it.
	worseDiskSince time.Time
}

// watchLeadership begins and ends leaderships. raft reports every gain and loss in order, so a leadership that is lost
// and regained at once yields two values of leadership that share nothing.
func (n *Node) watchLeadership() {
	var current *leadership
	defer func() { n.endLeadership(current) }()
	for {
		select {
		case leading := <-n.leadershipCh:
			n.endLeadership(current)
			current = nil
			if leading && n.fault() == nil {
				current = n.beginLeadership()
			}
		case <-n.stallChanged:
			current = n.followStall(current)
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) beginLeadership() *leadership {
	l := &leadership{
		node: n, term: n.raft.CurrentTerm(), queue: newProposalQueue(), startedAt: time.Now(),
		configLock:  newConfigLock(),
		healthTable: newHealthTable(),
		clockMoved:  make(chan struct{}, 1),
		suspended:   make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(n.ctx)
	l.reads = &readBatcher{
		confirmIndex: l.confirmLeadership, startTask: l.tasks.start,
		observeBatch: n.observeReadBatch(true), abandoned: l.suspended,
	}
	l.tasks.start(l.lead)
	return l
}

// establishedLeadership returns the leadership of this node, or an *Error if the node does not serve or does not lead.
func (n *Node) establishedLeadership() (*leadership, error) {
	if err := n.checkServing(); err != nil {
		return nil, err
	}
	l := n.leadership.Load()
	if l == nil {
		return nil, n.notLeaderError()
	}
	return l, nil
}

// endLeadership makes the node refuse leader operations, then waits until all tasks of the leadership have ended. raft
// answers all futures of a leader that stepped down, so this takes no longer than the leader lease.
func (n *Node) endLeadership(l *leadership) {
	if l == nil {
		return
	}
	n.leadership.CompareAndSwap(l, nil)
	l.cancel()
	l.queue.close()
	if err := l.tasks.wait(context.Background()); err != nil {
		n.log.Error("the tasks of a leadership did not end", "error", err)
	}
	n.changes.notifyAll()
	n.log.Info("leadership ended", "term", l.term)
}

func (l *leadership) lead() {
	if !l.establish() {
		return
	}
	n := l.node
	n.leadership.Store(l)
	if l.ctx.Err() != nil {
		n.leadership.CompareAndSwap(l, nil)
		return
	}
	n.changes.notifyAll()
	n.config.Observer.LeadershipEstablished()
	n.log.Info("leadership established", "term", l.term, "ledger-time", l.node.ledger.Now())
	l.tasks.start(l.correctAddresses)
	l.tasks.start(l.runExpiry)
	l.tasks.start(l.runSchedules)
	if n.config.RaiseLevelAfter > 0 {
		l.tasks.start(l.autoRaiseLevel)
	}
	if n.config.CheckpointEvery > 0 {
		l.tasks.start(l.runCheckpoints)
	}
	l.tasks.start(l.runAutopilot)
	l.proposeQueued()
}

// establish waits until the ledger contains everything that earlier leaders committed, and starts the clock at the
// ledger's time. If that fails, it transfers the leadership and tries again.
func (l *leadership) establish() bool {
	for {
		err := l.node.raft.Barrier(0).Error()
		if err == nil {
			err = l.abandonReplacement(l.node.ledger.Replacing())
		}
		if l.ctx.Err() != nil {
			return false
		}
		if err == nil {
			l.clock = startClock(l.node.ledger.Now())
			return true
		}
		l.node.log.Warn("cannot establish the leadership, transferring it", "term", l.term, "error", err)
		if err := l.node.raft.LeadershipTransfer().Error(); err != nil {
			l.node.log.Warn("cannot transfer the leadership", "error", err)
		}
		if !sleepContext(l.ctx, leaderRetry) {
			return false
		}
	}
}

// correctAddresses updates the address of servers in raft's configuration that came back under another raft address. A
// server is identified by its id; its address is taken only from its own answer.
func (l *leadership) correctAddresses() {
	for {
		changed := l.node.changes.nextChange()
		pause := 10 * leaderRetry
		if !l.correctNextAddress() {
			pause = leaderRetry
		}
		if !waitForChange(l.ctx, changed, pause) {
			return
		}
	}
}

// correctNextAddress holds the configuration lock: a server that is removed or demoted meanwhile must not return to the
// configuration with its new address.
func (l *leadership) correctNextAddress() (done bool) {
	err := l.configLock.withLock(l, func() error {
		done = l.correctOneAddress()
		return nil
	})
	return err == nil && done
}

// correctOneAddress corrects at most one address, because raft changes one server at a time. It returns false on
// failure.
func (l *leadership) correctOneAddress() bool {
	n := l.node
	for _, s := range n.servers() {
		address := n.raftAddressOf(s)
		if address == s.Address || CheckAdvertisedAddr("RaftAddr", string(address)) != nil {
			continue
		}
		n.log.Info("a server has another raft address", "server", s.ID, "old", s.Address, "new", address)
		if err := n.updateAddress(s, address); err != nil {
			n.log.Warn("cannot correct a server's address", "server", s.ID, "error", err)
			return false
		}
		return true
	}
	return true
}

// raftAddressOf returns the raft address that a server reported, if it answered recently, otherwise the configured one.
// Versions below feature level 5 do not report it, so their addresses are corrected once they are upgraded.
func (n *Node) raftAddressOf(s raft.Server) raft.ServerAddress {
	if string(s.ID) == n.config.ID {
		return raft.ServerAddress(n.config.RaftAdvertise)
	}
	a := n.answers.findAnswer(string(s.ID))
	if !a.isCurrent() || a.RaftAddr == "" {
		return s.Address
	}
	return raft.ServerAddress(a.RaftAddr)
}

// presentAddress returns where raft finds a server: at the address that it answered from recently, otherwise at the
// configured one. Unlike the configuration, which only a leader corrects, this works when a majority has moved. The
// address comes from gossip at first, but is used only once the server itself has answered there with its id, which a
// certificate proves (docs/adr/0119).
func (n *Node) presentAddress(id raft.ServerID, configured raft.ServerAddress) raft.ServerAddress {
	if string(id) == n.config.ID {
		return configured
	}
	a := n.answers.findAnswer(string(id))
	if !a.isCurrent() || CheckAdvertisedAddr("RaftAddr", a.RaftAddr) != nil {
		return configured
	}
	return raft.ServerAddress(a.RaftAddr)
}

func (n *Node) updateAddress(s raft.Server, address raft.ServerAddress) error {
	timeout := n.config.scaleTimeout(stepTimeout)
	if s.Suffrage == raft.Nonvoter {
		return n.raft.AddNonvoter(s.ID, address, 0, timeout).Error()
	}
	return n.raft.AddVoter(s.ID, address, 0, timeout).Error()
}
