package client_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
)

// process is one process with a share: its network can be cut.
type process struct {
	*fakeCluster

	cut atomic.Bool
}

func (p *process) Do(r *http.Request) (*http.Response, error) {
	if p.cut.Load() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("the network is cut")}
	}
	answer, err := p.fakeCluster.Do(r)
	if p.cut.Load() {
		return nil, &net.OpError{Op: "read", Err: errors.New("the network was cut")}
	}
	return answer, err
}

func (p *process) share(t *testing.T, step, least, most int64) *client.Share {
	t.Helper()
	c, err := client.New(playServers, client.WithHTTPClient(p))
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.NewShare(c, client.ShareConfig{
		Tree: "ci", Resource: "units", Step: step, Min: least, Max: most, TTL: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeShare(t *testing.T, s *client.Share) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A share grows ahead of its use, keeps what it may need soon, and returns the rest.
func TestAShareFollowsItsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{fakeCluster: newFakeCluster()}
		s := p.share(t, 10, 10, 50)
		defer closeShare(t, s)
		if s.TryAcquire(1) != nil {
			t.Error("granted before anything is held")
		}
		var grants []*client.Grant
		for range 25 {
			g, err := s.Acquire(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			grants = append(grants, g)
		}
		time.Sleep(time.Second)
		if got := s.Stats(); got.Held != 30 || got.Used != 25 {
			t.Errorf("with 25 in use: %+v", got)
		}
		grants = append(grants, s.TryAcquire(1))
		time.Sleep(10 * time.Second)
		if got := s.Stats(); got.Held != 40 || got.Used != 26 {
			t.Errorf("with 26 in use, less than half a step is free: %+v", got)
		}
		for _, g := range grants {
			g.Release()
			g.Release()
		}
		time.Sleep(10 * time.Second)
		if got := s.Stats(); got.Held != 10 || got.Used != 0 || len(p.holdings()) != 1 || got.Returned != 3 {
			t.Errorf("unused: %+v, %d at the servers", got, len(p.holdings()))
		}
	})
}

// Every step of a share is held by the user that the share names.
func TestAShareNamesItsUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		s, err := client.NewShare(p.client(t), client.ShareConfig{
			Tree: "ci", Resource: "units", Step: 1, Min: 2, Max: 2, TTL: 3 * time.Second, User: "ann", Groups: []string{"dev"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closeShare(t, s)
		time.Sleep(time.Second)
		held := p.holdings()
		for id, a := range held {
			if p := a.GetPrincipal(); p.GetUser() != "ann" || len(p.GetGroups()) != 1 || p.GetGroups()[0] != "dev" {
				t.Errorf("%s is held by %v", id, p)
			}
		}
		if len(held) != 2 {
			t.Errorf("%d steps are held, want 2", len(held))
		}
	})
}

// Callers wait in order; one that gives up does not hold up the next, and Close ends all.
func TestWaitingForAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{fakeCluster: newFakeCluster()}
		s := p.share(t, 10, 10, 10)
		first, err := s.Acquire(t.Context(), 8)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(t.Context(), 11); err == nil {
			t.Error("more than a step was accepted")
		}
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Acquire(short, 9); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after a second: %v", err)
			}
		})
		for i, units := range []int64{7, 2} {
			synctest.Wait()
			all.Go(func() {
				g, err := s.Acquire(t.Context(), units)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				time.AfterFunc(time.Second, g.Release)
			})
		}
		synctest.Wait()
		if s.TryAcquire(1) != nil {
			t.Error("TryAcquire overtook callers that wait")
		}
		time.Sleep(2 * time.Second)
		first.Release()
		all.Wait()
		if len(order) != 2 {
			t.Errorf("granted: %v", order)
		}
		time.Sleep(2 * time.Second)
		closeShare(t, s)
		if _, err := s.Acquire(t.Context(), 1); !errors.Is(err, client.ErrShareClosed) || len(p.holdings()) != 0 {
			t.Errorf("closed: %v, %d held", err, len(p.holdings()))
		}
	})
}

// A process that cannot renew stops granting, and its grants end, before the servers give the units to another.
func TestAShareEndsBeforeItsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{fakeCluster: newFakeCluster()}
		p.room = 1
		q := &process{fakeCluster: p.fakeCluster}
		mine, others := p.share(t, 10, 10, 10), q.share(t, 10, 0, 10)
		g, err := mine.Acquire(t.Context(), 4)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // renewed all the time
		if !g.Valid() {
			t.Error("not valid although it was renewed")
		}
		p.cut.Store(true)
		next := make(chan time.Time, 1)
		go func() {
			other, err := others.Acquire(t.Context(), 10)
			if err != nil {
				t.Error(err)
				return
			}
			next <- time.Now()
			other.Release()
		}()
		<-g.Done()
		over := time.Now()
		if g.Valid() || mine.TryAcquire(1) != nil {
			t.Error("grants outlive their lease")
		}
		until := g.Until()
		if at := <-next; !at.After(over) || at.Before(until) {
			t.Errorf("ended at %v, to stop until %v, granted elsewhere at %v", over, until, at)
		}
		g.Release()
		closeShare(t, others)
		p.cut.Store(false)
		closeShare(t, mine)
	})
}

// TestSharesNeverExceedTheLimit plays processes that lose their network at random, with holders that keep to the
// contract, and counts what is in use at every moment: the oracle is one counter for all processes.
func TestSharesNeverExceedTheLimit(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			const processes, step = 3, 5
			random := rand.New(rand.NewPCG(seed, 1))
			shared := newFakeCluster()
			shared.room = 1 + random.IntN(5)
			limit := int64(shared.room * step)
			o := &shareOracle{limit: limit}
			ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
			defer stop()
			var all sync.WaitGroup
			for i := range processes {
				p := &process{fakeCluster: shared}
				s := p.share(t, step, 0, limit)
				own := rand.New(rand.NewPCG(seed, uint64(10+i)))
				all.Go(func() { p.breakNetwork(ctx, own) })
				var holders sync.WaitGroup
				for j := range 8 {
					dice := rand.New(rand.NewPCG(seed, uint64(100+10*i+j)))
					holders.Go(func() { o.hold(ctx, t, s, dice) })
				}
				all.Go(func() {
					holders.Wait()
					closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
					defer cancel()
					_ = s.Close(closing) // the network may be cut: the leases expire
				})
			}
			all.Wait()
			time.Sleep(5 * time.Second)
			if o.most.Load() > limit || o.grants.Load() < 50 || o.lost.Load() == 0 || len(shared.holdings()) != 0 {
				t.Errorf("seed %d: %d of %d units in use, %d grants, %d lost, %d leases left", seed, o.most.Load(), limit,
					o.grants.Load(), o.lost.Load(), len(shared.holdings()))
			}
		})
	}
}

// breakNetwork cuts the network of a process at random, often for longer than a lease lasts.
func (p *process) breakNetwork(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		p.cut.Store(false)
		time.Sleep(time.Duration(random.Int64N(int64(12 * time.Second))))
		p.cut.Store(true)
		time.Sleep(time.Duration(random.Int64N(int64(6 * time.Second))))
	}
}

type shareOracle struct {
	limit                     int64
	inUse, most, grants, lost atomic.Int64
}

// hold acquires units repeatedly, and uses them until it is done or must stop: at the latest at Until.
func (o *shareOracle) hold(ctx context.Context, t *testing.T, s *client.Share, random *rand.Rand) {
	t.Helper()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		units := 1 + random.Int64N(5)
		waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
		g, err := s.Acquire(waiting, units)
		cancel()
		if err != nil {
			continue
		}
		o.grants.Add(1)
		now := o.inUse.Add(units)
		for most := o.most.Load(); now > most && !o.most.CompareAndSwap(most, now); most = o.most.Load() {
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(2 * time.Second)))):
		case <-g.Done():
			o.lost.Add(1)
			// A slow holder uses all the time that the contract leaves it.
			if left := time.Until(g.Until()); left > 0 {
				time.Sleep(left - time.Nanosecond)
			}
		}
		o.inUse.Add(-units)
		g.Release()
	}
}

// BenchmarkShare measures pairs of TryAcquire and Release.
func BenchmarkShare(b *testing.B) {
	p := newFakeCluster()
	c := p.client(b)
	s, err := client.NewShare(c, client.ShareConfig{
		Tree: "ci", Resource: "units", Step: 1000, Min: 4000, Max: 8000, TTL: time.Minute,
	})
	if err != nil {
		b.Fatal(err)
	}
	for s.Stats().Held < 4000 {
		time.Sleep(time.Millisecond)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.TryAcquire(1).Release()
		}
	})
	b.StopTimer()
	if err := s.Close(context.Background()); err != nil {
		b.Error(err)
	}
}
