package ledger_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestForecast: if nothing else happens than renewals, and what is due, each waiting request is granted exactly when
// the forecast says, and no request is granted that the forecast leaves out.
func TestForecast(t *testing.T) {
	granted, absent := 0, 0
	verify.Check(t, func(t *rapid.T) {
		for range 15 {
			f := newForecastLedger(t)
			forecast := f.forecast(t)
			for id, at := range f.passTime(t, 200) {
				if forecast[id] != at {
					t.Fatalf("%q was granted at %d, and not at %d as in the forecast", id, at, forecast[id])
				}
				delete(forecast, id)
				granted++
			}
			for id, at := range forecast {
				if at <= f.now {
					t.Fatalf("the forecast for %q is %d, and it was not granted until %d", id, at, f.now)
				}
			}
			absent += f.ledger.Reader().Counts().Waiting
		}
	})
	if verify.Enabled() && (granted == 0 || absent == 0) {
		t.Errorf("%d grants were as in the forecast, and %d requests have none", granted, absent)
	}
}

type forecastLedger struct {
	ledger *ledger.Ledger
	now    quota.Instant
}

func newForecastLedger(t *rapid.T) *forecastLedger {
	f := &forecastLedger{ledger: ledger.New(quota.DefaultBounds())}
	for _, name := range []string{"t", "u"} {
		c := quotatest.BorrowingTree(name).Draw(t, "tree")
		for i := range c.Trees[0].Nodes {
			c.Trees[0].Nodes[i].Policy = ""
		}
		c.Trees[0].Nodes[0].Policy = []string{"borrowing", "open"}[quotatest.Die(t, 2, "policy")]
		c.Trees[0].Overtake = quota.Span(1 + quotatest.Die(t, 12, "overtake"))
		c.Trees[0].Leases.Grace = quota.Span(quotatest.Die(t, 3, "grace"))
		f.ledger.Apply(quota.Stamp{}, c)
	}
	for i := range 30 {
		f.now += quota.Instant(quotatest.Die(t, 2, "tick"))
		f.apply(quota.Expire{Most: quota.MaxExpire})
		c, ok := quotatest.BorrowingCommands().Draw(t, "command").(quota.Allocate)
		if !ok {
			continue
		}
		c.ID, c.Mode = fmt.Sprint("a", i), quota.Hold
		if quotatest.Die(t, 2, "waits") == 0 {
			c.Mode, c.Priority = quota.Wait, int64(quotatest.Die(t, 3, "rank"))
			if quotatest.Die(t, 4, "wait") == 0 {
				c.WaitFor = quota.Span(1 + quotatest.Die(t, 40, "wait for"))
			}
		}
		if quotatest.Die(t, 4, "known") > 0 {
			c.For = quota.Span(1 + quotatest.Die(t, 30, "for"))
		}
		if quotatest.Die(t, 3, "lease") == 0 {
			c.TTL = quota.Span(2 + quotatest.Die(t, 20, "ttl"))
		}
		f.apply(c)
	}
	if quotatest.Die(t, 4, "hold") == 0 {
		f.apply(quota.CordonNode{Tree: "t", Node: "", For: quota.Span(1 + quotatest.Die(t, 20, "hold for"))})
	}
	return f
}

func (f *forecastLedger) apply(c quota.Command) []ledger.Fact {
	f.ledger.Apply(quota.Stamp{At: f.now}, c)
	return f.ledger.TakeFacts()
}

func (f *forecastLedger) forecast(t *rapid.T) map[string]quota.Instant {
	before := asJSON(f.ledger.Snapshot().Header)
	scratch, err := ledger.CopyForPlans(quota.DefaultBounds(), f.ledger.Format(), f.ledger.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	forecast, refused := scratch.Sandbox().Forecast()
	if refused != nil || asJSON(f.ledger.Snapshot().Header) != before {
		t.Fatal(refused, "or the ledger has changed")
	}
	return forecast
}

// passTime renews leases and asks for nothing else. It returns what was granted from the queue, and when.
func (f *forecastLedger) passTime(t *rapid.T, span quota.Instant) map[string]quota.Instant {
	granted := map[string]quota.Instant{}
	f.renewAll()
	for end := f.now + span; f.now < end; {
		f.now++
		facts := f.apply(quota.Expire{Most: quota.MaxExpire})
		for _, fact := range facts {
			if fact.Kind == ledger.FactGranted && fact.Since != 0 {
				granted[fact.Allocation.ID()] = f.now
			}
		}
		f.renewAll()
	}
	if err := f.ledger.Check(); err != nil {
		t.Fatal(err)
	}
	return granted
}

func (f *forecastLedger) renewAll() {
	page, _ := f.ledger.Reader().Allocations(quota.AllocationFilter{Leases: true}, 0, 1000)
	for _, a := range page.Allocations {
		f.apply(quota.Renew{ID: a.ID})
	}
}
