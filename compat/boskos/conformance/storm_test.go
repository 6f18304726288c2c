package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/boskos/client"
	"sigs.k8s.io/boskos/common"
)

const (
	stormClients = 64
	stormItems   = 20
	stormFor     = 12 * time.Second
)

// holders records which client has which item, from the answer to an acquire until just before a release is sent.
type holders struct {
	mu       sync.Mutex
	holderOf map[string]string
	pairs    int
	clashes  []string
}

func (h *holders) take(name, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, held := h.holderOf[name]; held {
		h.clashes = append(h.clashes, fmt.Sprintf("%s is with %s and with %s", name, other, owner))
	}
	h.holderOf[name] = owner
}

func (h *holders) leave(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.holderOf, name)
	h.pairs++
}

// storm runs many clients that want few items through all nodes while the leader is killed twice. No item is with two
// of them at any time, and none is lost.
func (c *cluster) storm(t *testing.T) {
	t.Helper()
	h := &holders{holderOf: map[string]string{}}
	ctx, cancel := context.WithTimeout(t.Context(), stormFor)
	defer cancel()
	var clients sync.WaitGroup
	for i := range stormClients {
		clients.Go(func() {
			work(ctx, t, h, fmt.Sprintf("client-%d", i), c.url(c.Servers[i%len(c.Servers)]))
		})
	}
	for range 2 {
		time.Sleep(stormFor / 4)
		lost := c.killLeader(t)
		time.Sleep(time.Second)
		lost.Restart(t)
	}
	clients.Wait()
	for _, clash := range h.clashes {
		t.Error(clash)
	}
	if len(h.holderOf) > 0 || h.pairs < stormItems {
		t.Errorf("after %d pairs, still held: %v", h.pairs, h.holderOf)
	}
	t.Logf("%d pairs", h.pairs)
	allThere(t, c)
}

// work acquires and releases until the time is over. A caller that is in the queue then waits for its grant, and
// releases it.
func work(ctx context.Context, t *testing.T, h *holders, owner, url string) {
	t.Helper()
	me := newClient(t, owner, url)
	for round := 0; ctx.Err() == nil; round++ {
		r := take(t, me, fmt.Sprintf("%s-%d", owner, round))
		if r == nil {
			return
		}
		h.take(r.Name, owner)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		h.leave(r.Name)
		giveBack(t, me, r.Name)
	}
}

// take repeats one request id until it is granted.
func take(t *testing.T, me *client.Client, id string) *common.Resource {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
		time.Duration(rand.IntN(50)) * time.Millisecond) {
		var r *common.Resource
		if r, err = me.AcquireWithPriority("storm", "free", "busy", id); err == nil {
			return r
		}
		if errors.Is(err, client.ErrTypeNotFound) {
			break
		}
	}
	t.Errorf("%s is not served: %v", id, err)
	return nil
}

// giveBack releases until that is certain. A refusal is certain too: an attempt before, whose answer was lost, has
// released the item.
func giveBack(t *testing.T, me *client.Client, name string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = me.Release(name, "free"); err == nil || strings.Contains(err.Error(), "401") {
			return
		}
	}
	t.Errorf("%s cannot be released: %v", name, err)
}

// allThere expects that every node shows every item free.
func allThere(t *testing.T, c *cluster) {
	t.Helper()
	for _, s := range c.Servers {
		metric, err := newClient(t, "", c.url(s)).Metric("storm")
		if err != nil || metric.Current["free"] != stormItems || metric.Owners[""] != stormItems {
			t.Errorf("%s shows %+v, %v", s.ID, metric, err)
		}
	}
}
