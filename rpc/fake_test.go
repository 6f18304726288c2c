package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/handlers"
	"github.com/quorate/quorate/rpc/identify"
)

// fakeCluster is a cluster without a log: all its nodes share one real ledger, and the test chooses the leader.
type fakeCluster struct {
	mu      sync.Mutex
	ledger  *ledger.Ledger
	wall    int64
	index   uint64
	leader  string
	members []cluster.Member
	changed chan struct{}
	// book is the access book of all nodes.
	book atomic.Pointer[access.Book]
	// audit takes what the servers record of their calls, and before a change if auditRequired; records are the audit
	// records of the ledger, which tests make.
	audit                      AuditLog
	auditRequired, auditGrants bool
	records                    audit.Ring
	// news are all facts so far; the first "forgotten" ones are no longer readable.
	news      []cluster.WatchEvent
	forgotten cluster.Position
	more      chan struct{}
	// bootstrapSecret is that of all servers.
	bootstrapSecret [32]byte
	// closed is true if servers serve no open cluster.
	closed bool
	// supported is the newest feature level that nodes understand; 0 is that of the cluster.
	supported uint32
	// wasGuarded is true if servers know that the cluster is guarded.
	wasGuarded bool
	// recovery is what was prepared on the machines of all servers; nil for nothing.
	recovery func() (RecoveryOffer, bool, error)
	// hangUp closes idle connections. Without it, the shutdown of every server waits a second for them.
	hangUp []func()
}

func newFakeCluster() *fakeCluster {
	c := &fakeCluster{
		ledger: ledger.New(quota.DefaultBounds()), wall: 1_700_000_000_000, changed: make(chan struct{}),
		more: make(chan struct{}),
	}
	return c
}

// lead makes a node the leader; an empty id leaves the cluster without a leader.
func (c *fakeCluster) lead(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = id
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeCluster) apply(commands ...quota.Command) ([]ledger.Outcome, uint64) {
	return c.applyAt(0, commands...)
}

// applyAt applies a command at an instant of ledger time, or now if that is later.
func (c *fakeCluster) applyAt(at quota.Instant, commands ...quota.Command) ([]ledger.Outcome, uint64) {
	system := access.SystemCaller()
	return c.applyFrom(&system, at, commands...)
}

// applyFrom is applyAt for commands of a caller.
func (c *fakeCluster) applyFrom(
	caller *access.Caller, at quota.Instant, commands ...quota.Command,
) ([]ledger.Outcome, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	outcomes, number := make([]ledger.Outcome, len(commands)), uint32(0)
	for i, command := range commands {
		outcomes[i] = c.ledger.ApplyFrom(quota.Stamp{At: max(at, quota.Instant(c.index)), Wall: c.wall},
			ledger.Origin{Caller: caller, Index: c.index}, command)
		for _, fact := range c.ledger.TakeFacts() {
			number++
			c.news = append(
				c.news, cluster.WatchEvent{
					Position: cluster.Position{Index: c.index, Number: number}, Fact: fact,
					At: outcomes[i].Now,
				})
		}
	}
	close(c.more)
	c.more = make(chan struct{})
	return outcomes, c.index
}

// ReadFeed reads the feed; every fake node has applied everything.
func (c *fakeCluster) ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after == cluster.LatestPosition() {
		after = cluster.PositionAfter(c.index)
	}
	if after.Compare(c.forgotten) < 0 {
		return cluster.FeedPage{Next: c.forgotten}, &cluster.Error{
			Reason: cluster.Forgotten, NotApplied: true,
			Text: "it is not remembered",
		}
	}
	from, _ := slices.BinarySearchFunc(c.news, after,
		func(n cluster.WatchEvent, p cluster.Position) int { return cmp.Or(n.Compare(p), -1) })
	to := min(len(c.news), from+most)
	b := cluster.FeedPage{
		Events: slices.Clone(c.news[from:to]), Next: cluster.PositionAfter(c.index), At: c.ledger.Reader().Now(),
		Behind: len(c.news) - to, Changed: c.more,
	}
	if b.Behind > 0 {
		b.Next = b.Events[len(b.Events)-1].Position
	}
	return b, nil
}

// WaitApplied waits for an index; every fake node has applied everything.
func (c *fakeCluster) WaitApplied(ctx context.Context, index uint64) error {
	for {
		c.mu.Lock()
		applied, more := c.index, c.more
		c.mu.Unlock()
		if applied >= index {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type fakeNode struct {
	*fakeCluster
	handlers.Membership // always nil: the tests of cluster management use real nodes

	id string
	// asked holds the options of the latest read.
	asked cluster.ReadOptions
	// alone is true if the node has lent a sandbox.
	alone bool
	// proposing, if not nil, is called before a command is applied and may return an error to refuse it.
	proposing func(ctx context.Context) error
	reading   func(ctx context.Context) error
	unready   error
	// level is the feature level, 3 if unset; refused is a node that is not a member.
	level   atomic.Uint32
	refused string
	// patient is the number of calls of ProposeBatched.
	patient atomic.Int64
	// behind is the book of this node, if it has not caught up with the cluster.
	behind atomic.Pointer[access.Book]
}

// Book is that of the ledger, unless a test has set another one.
func (n *fakeNode) Book() *access.Book {
	if behind := n.behind.Load(); behind != nil {
		return behind
	}
	if set := n.book.Load(); set != nil {
		return set
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Reader().Book()
}

func (n *fakeNode) Propose(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	if n.proposing != nil {
		if err := n.proposing(ctx); err != nil {
			return nil, 0, err
		}
	}
	if !n.IsLeader() {
		return nil, 0, &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: n.id + " does not lead"}
	}
	outcomes, index := n.applyFrom(identify.CallerOf(ctx), 0, commands...)
	return outcomes, index, nil
}

func (n *fakeNode) ProposeBatched(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	n.patient.Add(1)
	return n.Propose(ctx, commands...)
}

// AuditRecords are those that a test has made: the fake records nothing.
func (n *fakeNode) AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.records.After(after, limit), n.records.Head(), nil
}

func (n *fakeNode) Read(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error) {
	return n.lend(ctx, o, func() { fn(n.ledger.Reader()) })
}

func (n *fakeNode) Sandbox(
	ctx context.Context, o cluster.ReadOptions, fn func(ledger.Sandbox),
) (cluster.ReadInfo, error) {
	return n.lend(ctx, o, func() {
		n.alone = true
		if !o.WhatIf || !n.ledger.Reader().NeedsCopy() {
			fn(n.ledger.Sandbox())
			return
		}
		scratch, err := ledger.CopyForPlans(quota.DefaultBounds(), n.ledger.Format(), n.ledger.Snapshot())
		if err != nil {
			panic(err)
		}
		fn(scratch.Sandbox())
	})
}

func (n *fakeNode) lend(ctx context.Context, o cluster.ReadOptions, fn func()) (cluster.ReadInfo, error) {
	if n.reading != nil {
		if err := n.reading(ctx); err != nil {
			return cluster.ReadInfo{}, err
		}
	}
	if !o.Stale {
		if _, err := n.WaitLeader(ctx); err != nil {
			return cluster.ReadInfo{}, err
		}
	}
	if o.Admit != nil {
		if err := o.Admit(); err != nil {
			return cluster.ReadInfo{}, err
		}
		o.Admit = nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.alone = o, false
	if o.MinIndex > n.index {
		return cluster.ReadInfo{}, &cluster.Error{Reason: cluster.Deadline, NotApplied: true, Text: "not applied yet"}
	}
	fn()
	return cluster.ReadInfo{Index: n.index, Now: n.ledger.Reader().Now(), Stale: o.Stale, Age: 7 * time.Millisecond}, nil
}

func (n *fakeNode) ReadIndex(context.Context) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leader != n.id {
		return 0, &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: n.id + " does not lead"}
	}
	return n.index, nil
}

func (n *fakeNode) LedgerTime() quota.Instant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Reader().Now()
}

func (n *fakeNode) Leader() (cluster.Member, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.find(n.leader)
}

func (n *fakeNode) find(id string) (cluster.Member, bool) {
	i := slices.IndexFunc(n.members, func(m cluster.Member) bool { return m.ID == id })
	if i < 0 {
		return cluster.Member{}, false
	}
	return n.members[i], true
}

func (n *fakeNode) IsLeader() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leader == n.id
}

func (n *fakeNode) WaitLeader(ctx context.Context) (cluster.Member, error) {
	for {
		n.mu.Lock()
		leader, known := n.find(n.leader)
		changed := n.changed
		n.mu.Unlock()
		if known {
			return leader, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cluster.Member{}, &cluster.Error{
				Reason: cluster.NoLeader, NotApplied: true,
				Text: "no leader is known", Cause: ctx.Err(),
			}
		}
	}
}

func (n *fakeNode) Members() []cluster.Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.members)
}

func (n *fakeNode) Status() cluster.NodeStatus {
	state := "Follower"
	if n.IsLeader() {
		state = "Leader"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return cluster.NodeStatus{
		ID: n.id, State: state, Term: 3, AppliedIndex: n.index, CommitIndex: n.index,
		LastIndex: n.index, Version: "test", FeatureLevel: 1,
	}
}

func (n *fakeNode) CivilTime() quota.CivilTime {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Reader().CivilTime()
}

func (n *fakeNode) Zones() *recurrence.Zones { return recurrence.CompiledZones() }

func (n *fakeNode) Ready() error { return n.unready }

func (n *fakeNode) AuthorizePeer(id string) error {
	if id == n.refused {
		return errors.New(id + " is not a member")
	}
	return nil
}
