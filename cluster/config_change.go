package cluster

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/fsm"
)

type configChanger struct {
	timeouts timeoutScale
	log      hclog.Logger
	ctx      context.Context //nolint:containedctx // that of the leadership
	tasks    *taskGroup
	raft     *raft.Raft
	ledger   *fsm.FSM
	roster   *peers.Roster
	leader   *leaderFinder
	changes  *changeNotifier
	// lock is full while a change is made, including the check of the configuration that it is based on.
	lock chan struct{}
}

// withLock runs f while no other change of this leadership is checked or made.
func (c *configChanger) withLock(f func() error) error {
	select {
	case c.lock <- struct{}{}:
	case <-c.ctx.Done():
		return c.leader.leadershipLostError(nil)
	}
	defer func() { <-c.lock }()
	return f()
}

// change runs f under the lock. f runs to its end even if ctx ends, because raft cannot cancel a
// configuration change.
func (c *configChanger) change(ctx context.Context, f func() (bool, error)) (changed bool, err error) {
	done := make(chan struct{})
	var result struct {
		changed bool
		err     error
	}
	started := c.tasks.start(func() {
		defer close(done)
		result.err = c.withLock(func() (err error) {
			if ctx.Err() != nil {
				return newError(Deadline, true, ctx.Err(), "another membership change took until the deadline")
			}
			result.changed, err = f()
			return err
		})
	})
	if !started {
		return false, c.leader.leadershipLostError(nil)
	}
	select {
	case <-done:
		return result.changed, result.err
	case <-ctx.Done():
		return false, newError(Deadline, false, ctx.Err(),
			"the membership change was not confirmed in time; check with "+
				"`quorate member list`, and repeat it if it was not made")
	}
}

func (c *configChanger) configurationError(err error) error {
	if err == nil {
		return nil
	}
	for _, accident := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress, raft.ErrEnqueueTimeout,
		raft.ErrRaftShutdown,
	} {
		if errors.Is(err, accident) {
			return c.leader.applyError(err)
		}
	}
	return newError(Unsafe, true, err, "this membership change is not possible")
}

func (c *configChanger) addNonvoter(h NodeHealth) error {
	if written := c.ledger.Format(); h.Status.FeatureLevel < written {
		return newError(Unsafe, true, nil, "%s (version %s) understands feature level %d, and the log has "+
			"entries of level "+
			"%d; upgrade it first", h.ID, h.Status.Version, h.Status.FeatureLevel, written)
	}
	address := cmp.Or(h.Status.RaftAddr, h.RaftAddr) // versions below feature level 5 report it only by gossip
	c.log.Info("adding a new node", "member", h.ID, "raft", address)
	timeout := c.timeouts.scale(stepTimeout)
	return c.configurationError(
		c.awaitCommit(c.raft.AddNonvoter(raft.ServerID(h.ID), raft.ServerAddress(address), 0, timeout)))
}

func (c *configChanger) promoteToVoter(m Member) error {
	c.log.Info("promoting a node to voter", "member", m.ID)
	timeout := c.timeouts.scale(stepTimeout)
	future := c.raft.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(m.RaftAddr), 0, timeout)
	return c.configurationError(c.awaitCommit(future))
}

func (c *configChanger) demoteVoter(id string) error {
	timeout := c.timeouts.scale(stepTimeout)
	return c.configurationError(c.awaitCommit(c.raft.DemoteVoter(raft.ServerID(id), 0, timeout)))
}

func (c *configChanger) removeServer(id string) error {
	timeout := c.timeouts.scale(stepTimeout)
	return c.configurationError(c.awaitCommit(c.raft.RemoveServer(raft.ServerID(id), 0, timeout)))
}

// correctAddresses updates the address of servers in raft's configuration that came back under another raft address. A
// server is identified by its id; its address is taken only from its own answer.
func (c *configChanger) correctAddresses() {
	for {
		changed := c.changes.nextChange()
		pause := 10 * leaderRetry
		if !c.correctNextAddress() {
			pause = leaderRetry
		}
		if !waitForChange(c.ctx, changed, pause) {
			return
		}
	}
}

// correctNextAddress holds the configuration lock: a server that is removed or demoted meanwhile must not return to the
// configuration with its new address.
func (c *configChanger) correctNextAddress() (done bool) {
	err := c.withLock(func() error {
		done = c.correctOneAddress()
		return nil
	})
	return err == nil && done
}

// correctOneAddress corrects at most one address, because raft changes one server at a time. It returns false on
// failure.
func (c *configChanger) correctOneAddress() bool {
	for _, s := range c.roster.Servers() {
		address := c.roster.RaftAddressOf(s)
		if address == s.Address || CheckAdvertisedAddr("RaftAddr", string(address)) != nil {
			continue
		}
		c.log.Info("a server has another raft address", "server", s.ID, "old", s.Address, "new", address)
		if err := c.updateAddress(s, address); err != nil {
			c.log.Warn("cannot correct a server's address", "server", s.ID, "error", err)
			return false
		}
		return true
	}
	return true
}

func (c *configChanger) updateAddress(s raft.Server, address raft.ServerAddress) error {
	timeout := c.timeouts.scale(stepTimeout)
	if s.Suffrage == raft.Nonvoter {
		return c.awaitCommit(c.raft.AddNonvoter(s.ID, address, 0, timeout))
	}
	return c.awaitCommit(c.raft.AddVoter(s.ID, address, 0, timeout))
}

// commitNudge is how long a configuration change may take before the leader writes an entry after it.
const commitNudge = 500 * time.Millisecond

// awaitCommit waits for a configuration change, and writes entries after it if it takes long. raft v1.7.3 sends the
// entry of a promotion before it counts the new voter, and an acknowledgement that comes in between is not counted: if
// the majority needs that voter, the change is committed only with a later entry, which may never come on a quiet
// cluster.
func (c *configChanger) awaitCommit(change raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- change.Error() }() // raft answers at the latest when it stops to lead
	for pause := c.timeouts.scale(commitNudge); ; pause *= 2 {
		timer := time.NewTimer(pause)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C:
			c.raft.Barrier(pause) // what counts is the outcome of the change
		}
	}
}
