package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/relay"
)

const (
	// changesPause is the least time between two looks at the state, and so between two messages: four a second.
	changesPause = 250 * time.Millisecond
	// changesBurst is how long a look waits after the first change, so that what comes with it is in the same message.
	changesBurst = 20 * time.Millisecond
	// changesPoll is how often the members and the leader are looked at while nothing is applied.
	changesPoll = time.Second
	// positionPatience is how long a stream waits for its node to reach the position that was asked for. After that it
	// begins at the present: the position may be that of another cluster, or of a node that is ahead and away.
	positionPatience = 10 * time.Second
)

// ChangeService tells readers of the state when to read again.
type ChangeService struct{ Service }

// WatchChanges streams what may have changed, from the state of this node.
func (s ChangeService) WatchChanges(
	ctx context.Context, r *quoratev1.WatchChangesRequest, stream *connect.ServerStream[quoratev1.WatchChangesResponse],
) error {
	f := ChangeFollower{
		Service: s.Service, Send: func(m *quoratev1.WatchChangesResponse) error {
			admission.ExtendSending(ctx, 0)
			defer admission.ExtendSending(ctx, watchHeartbeat) // until the next message there is nothing to receive
			return stream.Send(m)
		},
	}
	return f.Follow(ctx, quota.ChangesQuery{After: r.GetAfterIndex(), Trees: r.GetTrees()})
}

// ChangeFollower is one stream. It looks at the state when something was applied, however much that is: the state
// knows what has changed since an index, so nothing is collected for streams, and a slow one has a larger answer.
type ChangeFollower struct {
	Service
	Send func(*quoratev1.WatchChangesResponse) error

	// query.After is the position: the index up to which the caller has been told.
	query quota.ChangesQuery
	begun time.Time
	// looked and sent are when the state was last looked at, and the last message went; applied is the index of the look.
	looked, sent time.Time
	applied      uint64
	// members and leaderKnown are those of the last message.
	members     string
	leaderKnown bool
}

// Follow sends what changes after the index of a query, or with an index of 0 from now on, until the context ends.
func (f *ChangeFollower) Follow(ctx context.Context, from quota.ChangesQuery) error {
	f.query, f.begun = from, time.Now()
	for {
		m, members, err := f.look(ctx)
		if err != nil {
			return err
		}
		if f.isDue(m) {
			f.sent, f.members, f.leaderKnown = time.Now(), members, m.GetLeaderKnown()
			if err := f.Send(m); err != nil {
				return err
			}
		}
		if !f.wait(ctx) {
			return nil
		}
	}
}

// isDue is true for the first message, one with a change, and a heartbeat if the next look can be too late for it.
func (f *ChangeFollower) isDue(m *quoratev1.WatchChangesResponse) bool {
	return f.sent.IsZero() || !m.GetHeartbeat() || m.GetLeaderKnown() != f.leaderKnown ||
		time.Since(f.sent) >= watchHeartbeat-changesPoll
}

// look advances the position, and returns the members as the caller sees them.
func (f *ChangeFollower) look(ctx context.Context) (*quoratev1.WatchChangesResponse, string, error) {
	var changes quota.Changes
	m, members, seesMembers := &quoratev1.WatchChangesResponse{ServedBy: f.ID}, "", false
	_, m.LeaderKnown = f.Node.Leader()
	stale := &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}
	isFirst := f.looked.IsZero()
	info, err := f.readState(ctx, stale, func(v ledger.Reader) error {
		if f.query.After > 0 || !isFirst {
			changes = v.Changes(f.query)
		}
		m.Revision = v.Revision()
		seesMembers = f.Access.RequireClusterIn(ctx, v.Book(), access.ClusterRead) == nil
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	if seesMembers {
		members = membersText(f.Node)
	}
	m.Index, m.LedgerTimeMs, m.AgeMs = info.GetIndex(), info.GetLedgerTimeMs(), info.GetAgeMs()
	m.Members = members != f.members && (f.query.After > 0 || !isFirst)
	f.looked, f.applied = time.Now(), info.GetIndex()
	if f.query.After > f.applied && time.Since(f.begun) > positionPatience {
		changes = quota.Changes{Everything: true}
	}
	if f.query.After < f.applied || changes.Everything {
		f.query.After = f.applied
	}
	putChanges(m, &changes)
	m.Heartbeat = changes.IsEmpty() && !m.GetMembers()
	return m, members, nil
}

// membersText identifies members, roles and leaders: it is equal if they are.
func membersText(node Node) string {
	var text strings.Builder
	leader, _ := node.Leader()
	text.WriteString(leader.ID)
	for _, m := range node.Members() {
		fmt.Fprintf(&text, "\n%s %t %t %s %s", m.ID, m.Voter, m.Alive, m.HTTPAddr, m.Version)
	}
	return text.String()
}

// wait returns false when the stream ends.
func (f *ChangeFollower) wait(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, changesPoll)
	defer cancel()
	_ = f.Node.WaitApplied(within, f.applied+1) // of a node that has halted, the next look says so
	pause := max(changesBurst, changesPause-time.Since(f.looked))
	return relay.SleepContext(ctx, pause)
}

func putChanges(m *quoratev1.WatchChangesResponse, c *quota.Changes) {
	m.Everything, m.Configuration, m.LimitRequests = c.Everything, c.Configuration, c.LimitRequests
	for _, t := range c.Trees {
		m.Trees = append(m.Trees, &quoratev1.TreeChanges{
			Tree: t.Tree, Nodes: t.Nodes, Many: t.Many, Queue: t.Queue, Items: t.Items,
		})
	}
}
