package clustertest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logRecorder) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logRecorder) countLines(says string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), says)
}

// TestAFollowerThatCannotAskItsLeaderIsNotReady, although raft reaches it: it reports this before a read fails, in its
// log once, and in its gauges. It is ready again when it can query the leader.
func TestAFollowerThatCannotAskItsLeaderIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said logRecorder
		c := clustertest.Start(t, 3, clustertest.WithConfig(func(config *cluster.Config) {
			config.Logger = hclog.New(&hclog.LoggerOptions{Output: &said, Level: hclog.Info})
		}))
		c.CreateTree()
		leader, follower := c.Leader(), c.Followers()[0]
		id := leader.Status().ID
		if d, found := follower.Gauges().Unreachable[id]; d != 0 || !found {
			t.Errorf("unreachable for %v, %v, before anything happened", d, found)
		}
		follower.SetRemoteReadIndex(func(context.Context, cluster.Member) (uint64, quota.Instant, error) {
			return 0, 0, errors.New("your certificate has ended")
		})
		time.Sleep(4 * time.Second)
		if err := follower.Ready(); err != nil {
			t.Errorf("not ready after a failure as short as a change of leader: %v", err)
		}
		wantUnready(t, "cannot confirm reads with leader "+id+" for 5s: your certificate has ended", follower)
		time.Sleep(25 * time.Minute)
		if d := follower.Gauges().Unreachable[id]; d < 25*time.Minute {
			t.Errorf("unreachable for %v, want more than 25 minutes", d)
		}
		if got := said.countLines("a member does not answer: member=" + id +
			" fault=\"it leads and does not confirm reads\""); got != 3 {
			t.Errorf("in 25 minutes the log says %d times that the leader cannot be asked, want 3", got)
		}
		if h := c.Health()[follower.Status().ID]; h.Healthy || !strings.Contains(h.Problem, "cannot confirm reads") {
			t.Errorf("the leader takes it for %+v", h)
		}
		follower.SetRemoteReadIndex(func(ctx context.Context, m cluster.Member) (uint64, quota.Instant, error) {
			index, err := leader.ReadIndex(ctx)
			return index, 0, err
		})
		time.Sleep(4 * time.Second)
		if err, d := follower.Ready(), follower.Gauges().Unreachable[id]; err != nil || d != 0 {
			t.Errorf("once it can ask again: %v, unreachable for %v", err, d)
		}
		if got := said.countLines("a member answers again: member=" + id); got != 1 {
			t.Errorf("the log says %d times that the leader can be asked again", got)
		}
	})
}

// unreachableClient is a PeerClient whose peers never answer.
type unreachableClient struct{}

func (unreachableClient) Status(context.Context, cluster.Member) (cluster.NodeStatus, error) {
	return cluster.NodeStatus{}, errors.New("no answer")
}

func (unreachableClient) Notify(context.Context, cluster.Member, cluster.Notice) error {
	return errors.New("no answer")
}

// TestALeaderTellsWhomItCannotAsk: each member of the configuration has a value of its own, and removed members have
// none.
func TestALeaderTellsWhomItCannotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		leader := c.Leader()
		leader.SetPeerClient(unreachableClient{})
		time.Sleep(time.Minute)
		own, all := leader.Status().ID, leader.Gauges().Unreachable
		for _, id := range []string{"n1", "n2", "n3"} {
			if d := all[id]; id == own && d != 0 || id != own && d < 50*time.Second {
				t.Errorf("the leader %s cannot ask %s for %v", own, id, d)
			}
		}
		lost := c.Followers()[0].Status().ID
		c.Stop(lost)
		if _, err := leader.Remove(t.Context(), lost, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if all := leader.Gauges().Unreachable; len(all) != 2 {
			t.Errorf("of two members it tells %v", all)
		}
		if err := leader.Ready(); err != nil {
			t.Errorf("the leader is not ready: %v", err)
		}
	})
}
