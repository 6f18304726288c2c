package client_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
)

// TestSuspendedMachines: the time in which the machine is suspended counts. A lease that is over by then ends within a
// second, and one that is due is renewed.
func TestSuspendedMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Int64
		p := newFakeCluster()
		c := p.client(t, client.WithSuspensions(func() time.Duration { return time.Duration(suspended.Load()) }))
		short, long := acquire(t, c, account("short", time.Minute)), acquire(t, c, account("long", time.Hour))
		time.Sleep(5 * time.Second)
		public, before, renewals := long.Ends(), long.Remaining(), p.count("BatchRenew")
		suspended.Add(int64(30 * time.Minute))
		if got := long.Remaining(); got != before-30*time.Minute {
			t.Errorf("after half an hour %v are left of %v", got, before)
		}
		if got := long.Ends(); !got.Equal(public.Add(-30 * time.Minute)) {
			t.Errorf("it ends at %v, and before at %v", got, public)
		}
		if short.Remaining() != 0 {
			t.Errorf("a lease of a minute lasts %v longer", short.Remaining())
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		lostHow(t, short, client.Unrenewed)
		if p.count("BatchRenew") == renewals || long.Remaining() < 50*time.Minute {
			t.Errorf("%d renewals after %d, and the long lease lasts %v", p.count("BatchRenew"), renewals, long.Remaining())
		}
		release(t, long)
	})
}
