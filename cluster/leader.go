package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// leaderRetry is the pause before another try to establish a leadership, or to correct an address.
const leaderRetry = time.Second

// life is one leadership, from the election to its loss, under one context.
type life struct {
	node   *Node
	ctx    context.Context //nolint:containedctx // it is the leadership: one ends with the other
	cancel context.CancelFunc
	tasks  tasks

	term  uint64
	clock *clock
	queue *queue
	// moved has a value when the clock was moved on.
	moved chan struct{}
	reads *rounds

	began time.Time
	seats seats
	ward  ward
}

// watchLeadership lives one life after the other. raft tells every gain and every loss, in order, so a leadership that
// was lost and regained in one breath is two lives.
func (n *Node) watchLeadership() {
	var current *life
	defer func() { n.end(current) }()
	for {
		select {
		case leading := <-n.notify:
			n.end(current)
			current = nil
			if leading && n.fault() == nil {
				current = n.begin()
			}
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) begin() *life {
	l := &life{
		node: n, term: n.raft.CurrentTerm(), queue: newQueue(), began: time.Now(), seats: newSeats(), ward: newWard(),
		moved: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancel(n.ctx)
	l.reads = &rounds{ask: l.confirm, spawn: l.tasks.start, ended: n.roundEnded(true)}
	l.tasks.start(l.run)
	return l
}

// end makes the node refuse what only a leader may do, then waits until everything of that life has ended. raft answers
// all futures of a leader that stepped down, so that takes no longer than the leader lease.
func (n *Node) end(l *life) {
	if l == nil {
		return
	}
	n.life.CompareAndSwap(l, nil)
	l.cancel()
	l.queue.close()
	if err := l.tasks.wait(context.Background()); err != nil {
		n.log.Error("a leadership did not end", "error", err)
	}
	n.changed.wake()
	n.log.Info("leadership ended", "term", l.term)
}

func (l *life) run() {
	if !l.establish() {
		return
	}
	n := l.node
	n.life.Store(l)
	if l.ctx.Err() != nil {
		n.life.CompareAndSwap(l, nil)
		return
	}
	n.changed.wake()
	n.config.Observer.Led()
	n.log.Info("leadership established", "term", l.term, "ledger-time", l.node.ledger.Now())
	l.tasks.start(l.correctAddresses)
	l.tasks.start(l.expire)
	if n.config.RaiseLevelAfter > 0 {
		l.tasks.start(l.keepLevel)
	}
	if n.config.CheckpointEvery > 0 {
		l.tasks.start(l.keepComparing)
	}
	l.tasks.start(l.steward)
	l.gather()
}

// establish waits until the ledger holds everything that earlier leaders committed, and takes its time from there. A
// leader that cannot do that hands the leadership on.
func (l *life) establish() bool {
	for {
		err := l.node.raft.Barrier(0).Error()
		if err == nil {
			err = l.giveUpReplacement(l.node.ledger.Replacing())
		}
		if l.ctx.Err() != nil {
			return false
		}
		if err == nil {
			l.clock = startClock(l.node.ledger.Now())
			return true
		}
		l.node.log.Warn("cannot establish the leadership, handing it on", "term", l.term, "error", err)
		if err := l.node.raft.LeadershipTransfer().Error(); err != nil {
			l.node.log.Warn("cannot hand the leadership on", "error", err)
		}
		if !after(l.ctx, leaderRetry) {
			return false
		}
	}
}

// correctAddresses follows servers of raft's configuration that came back under another raft address. The id is who
// they are, so the configuration keeps them and only learns the address, from the answer of the server itself.
func (l *life) correctAddresses() {
	for {
		changed := l.node.changed.next()
		pause := 10 * leaderRetry
		if !l.correctNext() {
			pause = leaderRetry
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// correctNext keeps every other change of the configuration out while it corrects: a server that is removed or demoted
// meanwhile must not come back with its address.
func (l *life) correctNext() (done bool) {
	err := l.seats.alone(l, func() error {
		done = l.correctOne()
		return nil
	})
	return err == nil && done
}

// correctOne corrects at most one address, because raft changes one server at a time; false if that failed.
func (l *life) correctOne() bool {
	n := l.node
	for _, s := range n.servers() {
		address := n.addressOf(s)
		if address == s.Address || CheckAdvertised("RaftAddr", string(address)) != nil {
			continue
		}
		n.log.Info("a server has another raft address", "server", s.ID, "old", s.Address, "new", address)
		if err := n.readdress(s, address); err != nil {
			n.log.Warn("cannot correct a server's address", "server", s.ID, "error", err)
			return false
		}
		return true
	}
	return true
}

// addressOf is where a server says that its raft is, if it answered a moment ago; otherwise where it is known to be. Versions
// below feature level 5 do not say it, so their addresses are corrected once they are upgraded.
func (n *Node) addressOf(s raft.Server) raft.ServerAddress {
	if string(s.ID) == n.config.ID {
		return raft.ServerAddress(n.config.RaftAdvertise)
	}
	a := n.answers.find(string(s.ID))
	if !a.isCurrent() || a.RaftAddr == "" {
		return s.Address
	}
	return raft.ServerAddress(a.RaftAddr)
}

func (n *Node) readdress(s raft.Server, address raft.ServerAddress) error {
	timeout := n.config.scaled(stepTimeout)
	if s.Suffrage == raft.Nonvoter {
		return n.raft.AddNonvoter(s.ID, address, 0, timeout).Error()
	}
	return n.raft.AddVoter(s.ID, address, 0, timeout).Error()
}
