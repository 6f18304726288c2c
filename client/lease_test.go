package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// latestRenewal is when a lease of a minute has been renewed at the latest: after a third of it, spread by a tenth, and
// the time of the calls.
const latestRenewal = 22*time.Second + 100*time.Millisecond

func account(id string, ttl time.Duration) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id: id, TtlMs: ttl.Milliseconds(),
		Claims: []*quoratev1.Claim{{Tree: "ci", Items: []*quoratev1.ItemPick{{Resource: "account"}}}},
	}
}

func acquire(
	t *testing.T,
	c *client.Client,
	r *quoratev1.AllocateRequest,
	options ...client.AcquireOption,
) *client.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), r, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *client.Lease) {
	t.Helper()
	if err := l.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func lostHow(t *testing.T, l *client.Lease, how client.How) *client.LostError {
	t.Helper()
	lost := (*client.LostError)(nil)
	cause := context.Cause(l.Context())
	if !errors.As(cause, &lost) || !errors.Is(cause, client.ErrLost) || lost.How != how {
		t.Fatalf("the cause is %v, want lost because %s", cause, string(how))
	}
	if l.Remaining() != 0 {
		t.Errorf("a lost lease lasts %v longer", l.Remaining())
	}
	return lost
}

func TestALeaseIsKeptUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", time.Minute))
		if l.ID() != "a" || l.Fence() != 1 || !slices.Equal(l.Items(), []string{"account-0"}) {
			t.Errorf("got %q with fence %d and items %q", l.ID(), l.Fence(), l.Items())
		}
		for range 60 {
			time.Sleep(time.Minute)
			if err := l.Context().Err(); err != nil || l.Remaining() < 30*time.Second || l.Remaining() > time.Minute {
				t.Fatalf("after a while: %v, %v left", context.Cause(l.Context()), l.Remaining())
			}
		}
		// every 20 seconds, spread by a tenth
		if calls := p.count("BatchRenew"); calls < 160 || calls > 200 {
			t.Errorf("an hour took %d renewals, want about 180", calls)
		}
		release(t, l)
		if cause := context.Cause(l.Context()); !errors.Is(cause, client.ErrReleased) ||
			errors.Is(cause, client.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
		release(t, l) // again is not an error
		if len(p.holdings()) != 0 {
			t.Errorf("still held: %v", p.holdings())
		}
	})
}

func TestTheContextIsTheCallersWithoutItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		l, err := p.client(t).Acquire(ctx, account("a", time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if l.Context().Err() != nil || l.Context().Value(key{}) != "value" {
			t.Errorf("the context ended: %v", context.Cause(l.Context()))
		}
		release(t, l)
	})
}

// TestTheSafeMoment: a disconnected holder stops before the servers grant its account to another holder.
func TestTheSafeMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", time.Minute))
		time.Sleep(10*time.Minute + time.Second)
		p.set(func() { p.gone = map[string]bool{"n1": true, "n2": true, "n3": true} })
		<-l.Context().Done()
		held := p.holdings()["a"]
		if held == nil {
			t.Fatal("the lease had expired at its safe moment")
		}
		lost := lostHow(t, l, client.Unrenewed)
		if !strings.Contains(lost.Error(), "connection refused") {
			t.Errorf("the error does not say why: %v", lost)
		}
		left := time.Duration(held.GetExpiresLedgerMs()-time.Since(p.began).Milliseconds()) * time.Millisecond
		if left < 3*time.Second || left > 3*time.Second+10*time.Millisecond {
			t.Errorf("the lease was over %v before its end, want the margin of 3s", left)
		}
	})
}

func TestTheMarginIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", time.Minute), client.WithMargin(15*time.Second))
		p.set(func() { p.gone = map[string]bool{"n1": true, "n2": true, "n3": true} })
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began).Round(time.Second); took != 45*time.Second {
			t.Errorf("it lasted %v, want 45s", took)
		}
	})
}

// TestLostAnswers: a renewal is repeated if its answer is lost, and a lost answer to a grant does not cause a second
// grant.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		p.set(func() { p.lose = 2 })
		l := acquire(t, p.client(t), account("", time.Minute))
		if l.Fence() != 1 || len(p.holdings()) != 1 {
			t.Errorf("fence %d, held %d", l.Fence(), len(p.holdings()))
		}
		for range 10 {
			p.set(func() { p.lose = 3 })
			time.Sleep(40 * time.Second)
		}
		if l.Context().Err() != nil {
			t.Errorf("lost: %v", context.Cause(l.Context()))
		}
		release(t, l)
	})
}

// TestAServerGoes: a lease is renewed at another server when one stops.
func TestAServerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", 6*time.Second))
		for i := range 30 {
			p.set(func() { p.gone = map[string]bool{fmt.Sprintf("n%d", i%3+1): true} })
			time.Sleep(5 * time.Second)
		}
		if l.Context().Err() != nil {
			t.Errorf("lost: %v", context.Cause(l.Context()))
		}
		release(t, l)
	})
}

// TestNoLeader: an outage shorter than the TTL does not affect holders. In a longer one they stop, because they cannot
// know that ledger time stands still and the lease is still held.
func TestNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		l := acquire(t, c, account("a", time.Minute))
		p.halt()
		time.Sleep(30 * time.Second)
		p.lead()
		time.Sleep(10 * time.Minute)
		if l.Context().Err() != nil {
			t.Fatalf("lost: %v", context.Cause(l.Context()))
		}
		p.halt()
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began); took < 30*time.Second || took > time.Minute {
			t.Errorf("the holder stopped after %v", took)
		}
		lostHow(t, l, client.Unrenewed)
		time.Sleep(time.Hour)
		p.lead()
		if p.holdings()["a"] == nil {
			t.Error("the lease has expired although ledger time stood still")
		}
		again := acquire(t, c, account("a", time.Minute))
		if again.Fence() != l.Fence() {
			t.Errorf("asked again under its id, it is another grant: fence %d, then %d", l.Fence(), again.Fence())
		}
		release(t, again)
	})
}

func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", time.Minute))
		p.set(func() {
			p.change("a", func(a *quoratev1.Allocation) {
				a.RevokedBy, a.ExpiresLedgerMs = &quoratev1.AllocationRef{Id: "boss"}, p.now()+30_000
			})
		})
		began := time.Now()
		<-l.Revoked()
		if took := time.Since(began); took > latestRenewal || l.Context().Err() != nil {
			t.Errorf("it was told after %v: %v", took, context.Cause(l.Context()))
		}
		if revoker := l.Allocation().GetRevokedBy().GetId(); revoker != "boss" {
			t.Errorf("revoked by %q", revoker)
		}
		<-l.Context().Done()
		if took := time.Since(began).Round(100 * time.Millisecond); took != 27*time.Second {
			t.Errorf("it was over after %v, want 30s less the margin", took)
		}
		if lost := lostHow(t, l, client.Preempted); lost.By != "boss" {
			t.Errorf("lost to %q", lost.By)
		}
	})
}

// TestLongLeasesAreTold: the holder of a long lease is notified of a revocation before its next renewal.
func TestLongLeasesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		var leases []*client.Lease
		for i := range 3 {
			leases = append(leases, acquire(t, c, account(fmt.Sprintf("l%d", i), time.Hour)))
		}
		for i, l := range leases {
			time.Sleep(10*time.Second + 5*time.Minute)
			p.set(func() {
				p.gone = map[string]bool{fmt.Sprintf("n%d", i+1): true}
				p.cuts = 1
				p.change(
					l.ID(), func(a *quoratev1.Allocation) {
						a.RevokedBy, a.ExpiresLedgerMs = &quoratev1.AllocationRef{Id: "boss"}, p.now()+30_000
					})
				p.tell(quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED, p.held[l.ID()])
			})
			began := time.Now()
			<-l.Revoked()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s was told after %v", l.ID(), took)
			}
			<-l.Context().Done()
			lostHow(t, l, client.Preempted)
		}
	})
}

// TestAShortGraceIsTold: if the grace is shorter than the time to the next renewal and than the holder's margin, the
// context ends at once, and Ends returns the time that is left.
func TestAShortGraceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", 30*time.Second), client.WithMargin(10*time.Second))
		if left := time.Until(l.Ends()).Round(time.Second); left != 30*time.Second {
			t.Errorf("it ends in %v, want 30s", left)
		}
		time.Sleep(time.Second)
		p.set(func() {
			p.change(l.ID(), func(a *quoratev1.Allocation) {
				a.RevokedBy, a.ExpiresLedgerMs = &quoratev1.AllocationRef{Id: "boss"}, p.now()+4_000
			})
			p.tell(quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED, p.held[l.ID()])
		})
		<-l.Context().Done()
		if left := time.Until(l.Ends()); left <= 3*time.Second || left > 4*time.Second {
			t.Errorf("it ends in %v, want almost 4s", left)
		}
		lostHow(t, l, client.Preempted)
	})
}

// TestTheServersSayThatItIsLost: the context of a lease ends at once if a server reports that the lease has ended.
func TestTheServersSayThatItIsLost(t *testing.T) {
	for how, happens := range map[client.How]func(*fakeCluster){
		client.Ended: func(p *fakeCluster) { p.finish("a", quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED) },
		client.Taken: func(p *fakeCluster) { p.change("a", func(a *quoratev1.Allocation) { a.Fence = 99 }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newFakeCluster()
			l := acquire(t, p.client(t), account("a", time.Minute))
			p.set(func() { happens(p) })
			began := time.Now()
			<-l.Context().Done()
			if took := time.Since(began); took > latestRenewal {
				t.Errorf("it was told after %v", took)
			}
			lostHow(t, l, how)
		})
	}
}

// TestRenewalsAreJoined: a thousand leases that were granted one after the other are renewed in few calls.
func TestRenewalsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		var leases []*client.Lease
		for i := range 1000 {
			leases = append(leases, acquire(t, c, account(fmt.Sprintf("l%d", i), time.Minute)))
		}
		time.Sleep(10 * time.Minute)
		if calls := p.count("BatchRenew"); calls > 60 {
			t.Errorf("ten minutes took %d calls, want about 30 of all leases", calls)
		}
		for _, l := range leases {
			if l.Context().Err() != nil {
				t.Fatalf("%s is lost: %v", l.ID(), context.Cause(l.Context()))
			}
			release(t, l)
		}
	})
}

// TestMoreThanFitInACall: no batch exceeds the limit of the API, and every lease is renewed.
func TestMoreThanFitInACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		var leases []*client.Lease
		for i := range 1100 {
			leases = append(leases, acquire(t, c, account(fmt.Sprintf("l%d", i), time.Minute)))
		}
		time.Sleep(2 * time.Minute)
		p.set(func() {
			if slices.Max(p.batches) != 1000 {
				t.Errorf("the largest batch has %d", slices.Max(p.batches))
			}
		})
		for _, l := range leases {
			if l.Context().Err() != nil {
				t.Fatalf("%s is lost: %v", l.ID(), context.Cause(l.Context()))
			}
			release(t, l)
		}
	})
}

func TestWithoutTTLNothingIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		l := acquire(t, p.client(t), account("a", 0))
		time.Sleep(100 * time.Hour)
		if l.Context().Err() != nil || p.count("BatchRenew") > 0 || l.Remaining() < time.Hour {
			t.Errorf("%v after %d renewals", context.Cause(l.Context()), p.count("BatchRenew"))
		}
		release(t, l)
	})
}
