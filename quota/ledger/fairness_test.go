package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// rememberedDenial is a denial in the slow model of the events.
type rememberedDenial struct{ id, owner string }

// rememberDenial is the rule: the newest so many of all, and of a user who has a share the newest of that.
func rememberDenial(list []rememberedDenial, d rememberedDenial, most, share int, hasShare bool) []rememberedDenial {
	list = append(slices.Clone(list), d)
	if len(list) > most {
		list = list[1:]
	}
	for hasShare {
		mine := slices.DeleteFunc(slices.Clone(list), func(o rememberedDenial) bool { return o.owner != d.owner })
		if len(mine) <= share {
			break
		}
		i := slices.Index(list, mine[0])
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// TestDenialsAreSharedByUsers: the events are those of the slow model after any sequence of denials.
func TestDenialsAreSharedByUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := quota.DefaultBounds()
		bounds.Events = rapid.IntRange(1, 40).Draw(t, "events")
		share := max(1, bounds.Events/quota.DenialsPerUser)
		mode := rapid.SampledFrom([]access.Mode{access.Open, access.Watching, access.Guarded}).Draw(t, "mode")
		g := newOpenOr(t, bounds, mode)
		var want []rememberedDenial
		for i := range rapid.IntRange(1, 80).Draw(t, "denials") {
			account := rapid.SampledFrom([]string{"hans", "hans", "hans", "heidi"}).Draw(t, "account")
			id := fmt.Sprint("d", i)
			if out := g.apply(account, claimCores(id, "atlas/physics/higgs", 90)); out.Decision == nil || out.Decision.Granted {
				t.Fatalf("%s is not denied: %+v", id, out)
			}
			want = rememberDenial(want, rememberedDenial{sharedID(id), "account/" + account}, bounds.Events, share,
				mode != access.Open)
			var got []rememberedDenial
			for _, e := range g.ledger.Reader().Events(quota.EventFilter{Kind: quota.EventDenied}, 1000).Events {
				got = append(got, rememberedDenial{e.ID, e.Owner})
			}
			if !slices.Equal(got, want) {
				t.Fatalf("after %d denials with a share of %d of %d, the events are %v, want %v", i+1, share,
					bounds.Events, got, want)
			}
		}
		if err := g.ledger.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// newOpenOr is newBounded with the CERN tree.
func newOpenOr(t rapid.TB, b quota.Bounds, mode access.Mode) *guarded {
	accounts := []string{"anna", "peter", "hans", "heidi", "carl"}
	if mode != access.Open {
		return newBounded(t, b, mode, cernTree(), accounts...)
	}
	g := &guarded{t: t, ledger: ledger.New(b)}
	g.must("root", quota.ApplyTrees{Trees: cernTree()})
	return g
}

// TestDenialsAreKeptByBytesToo: a user whose denials are large has at most a part of the bytes of all events.
func TestDenialsAreKeptByBytesToo(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.EventBytes = 100_000
	g := newOpenOr(t, bounds, access.Guarded)
	for i := range 200 {
		request := claimCores(fmt.Sprint("d", i), "atlas/physics/higgs", 90)
		request.Labels = []quota.Label{{Key: "k", Value: strings.Repeat("x", 200)}}
		g.apply("hans", request)
	}
	g.apply("heidi", claimCores("h", "atlas/physics/higgs", 90))
	n := len(g.ledger.Reader().Events(quota.EventFilter{Kind: quota.EventDenied}, 1000).Events)
	if sizes := g.ledger.Reader().Counts().Sizes; n < 5 || n > 40 ||
		sizes.Events > bounds.EventBytes/quota.DenialsPerUser+2000 {
		t.Errorf("%d events with %d bytes are kept", n, sizes.Events)
	}
	if err := g.ledger.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestOwnersSeeTheirDenials: who asked sees the denial of the request, in the list and by its id; others see it with
// the right to read holders there. Of two denials of one id, each owner is told the own one.
func TestOwnersSeeTheirDenials(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.apply("hans", claimCores("x", "atlas/physics/higgs", 91))
	g.apply("heidi", claimCores("x", "atlas/physics/higgs", 92))
	for account, want := range map[string][]quota.Amount{
		"hans": {91}, "heidi": {92}, "carl": nil, "anna": {91, 92}, "root": {91, 92},
	} {
		s, refused := g.ledger.Sandbox().ReaderOf(callerOf(account))
		if refused != nil {
			t.Fatal(refused)
		}
		var got []quota.Amount
		for _, e := range s.Events(quota.EventFilter{}, 10).Events {
			got = append(got, e.Request.Claims[0].Amounts[0].Amount)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sees the denials of %v cores, want %v", account, got, want)
		}
		decision, _, at, err := s.ExplainID(sharedID("x"))
		switch {
		case want == nil && (err == nil || err.Kind != quota.NotFound):
			t.Errorf("%s is told of a denial: %v", account, err)
		case want != nil && (err != nil || at == nil || decision.Violations[0].Requested != want[len(want)-1]):
			t.Errorf("%s is told %+v, %v", account, decision, err)
		}
	}
}

// TestUsersShareTheWaitQueue: one user may have a part of the queue, and then others can still wait. Below the
// guarded modes no one has a share.
func TestUsersShareTheWaitQueue(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.Waiting = 20
	waits := func(id string) quota.Allocate {
		request := claimCores(id, "atlas/physics/higgs", 10)
		request.Mode, request.WaitFor = quota.Wait, 60_000
		return request
	}
	g := newOpenOr(t, bounds, access.Guarded)
	g.must("hans", claimCores("holds", "atlas/physics/higgs", 10))
	for _, account := range []string{"hans", "heidi"} {
		for i := range 2 {
			id := fmt.Sprint(account, i)
			for range 2 { // repeated, it is the same request
				if out := g.apply(account, waits(id)); out.Decision == nil || !out.Decision.Waiting {
					t.Fatalf("%s does not wait: %+v", id, out)
				}
			}
		}
		g.refused(account, waits(account+"-more"), quota.Full,
			fmt.Sprintf("2 requests of account/%s wait, and the share of one user is 2 of the 20 that may", account))
	}
	g.must("hans", quota.Cancel{ID: "hans0"})
	if out := g.apply("hans", waits("hans-more")); out.Decision == nil || !out.Decision.Waiting {
		t.Errorf("after one was cancelled, the next does not wait: %+v", out)
	}
	if err := g.ledger.Check(); err != nil {
		t.Fatal(err)
	}
	g = newOpenOr(t, bounds, access.Open)
	g.must("hans", claimCores("holds", "atlas/physics/higgs", 10))
	for i := range bounds.Waiting {
		if out := g.apply("hans", waits(fmt.Sprint("w", i))); out.Decision == nil || !out.Decision.Waiting {
			t.Fatalf("in an open ledger, request %d does not wait: %+v", i, out)
		}
	}
}

// TestListsSayThatTheyAreFiltered: they do for callers without a right on all that the list may have, whatever there
// is, and for no one in an open ledger.
func TestListsSayThatTheyAreFiltered(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	open := newOpenOr(t, quota.DefaultBounds(), access.Open)
	filters := func(g *guarded, account string) [5]bool {
		r, refused := g.ledger.Reader().ReaderOf(callerOf(account))
		if refused != nil {
			t.Fatal(refused)
		}
		return [5]bool{
			r.FiltersHolders(), r.FiltersTrees(), r.FiltersRevisions(), r.FiltersUsage("cern", ""),
			r.FiltersUsage("cern", "atlas"),
		}
	}
	for account, want := range map[string][5]bool{
		"root": {}, "hans": {true, true, true, true, true}, "anna": {true, true, true, true, false},
	} {
		if got := filters(g, account); got != want {
			t.Errorf("for %s the lists of holders, trees, revisions and usage are filtered: %v, want %v", account, got, want)
		}
		if got := filters(open, account); got != [5]bool{} {
			t.Errorf("in an open ledger, for %s: %v", account, got)
		}
	}
}
