package activity

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/quota"
)

func (s *scene) page(t testing.TB) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(answer,
		httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Errorf("the page: %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func (s *scene) expectOnPage(t *testing.T, lines ...string) {
	t.Helper()
	page := "\n" + s.page(t)
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %q on the page:\n%s", line, page)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, lease("one", "a/b", 60_000), lease("two", "c", 600_000))
	s.do(t, waiting("three", "a"))
	s.do(t, waiting("four", "a"))
	s.tick(t, 0)
	s.expectOnPage(t,
		`quorate_held_allocations 2`, `quorate_leases 2`, `quorate_waiting_requests 2`, `quorate_activity_series 4`,
		`quorate_held_claims{tree="t"} 2`, `quorate_waiting_claims{tree="t"} 2`,
		`quorate_grants_total{from="request",tree="t"} 2`, `quorate_activity_gaps_total 0`)
	s.tick(t, 70*time.Second)
	s.do(t, quota.Expire{Most: 10}) // one ends, three is granted after 70 s
	s.do(t, quota.Cancel{ID: "four"}, quota.Release{ID: "two"}, quota.Release{ID: "three"})
	s.tick(t, 0)
	s.expectOnPage(
		t,
		`quorate_held_allocations 0`,
		`quorate_leases 0`,
		`quorate_waiting_requests 0`,
		`quorate_held_claims{tree="t"} 0`,
		`quorate_grants_total{from="queue",tree="t"} 1`,
		`quorate_ends_total{outcome="expired",tree="t"} 1`,
		`quorate_ends_total{outcome="released",tree="t"} 2`,
		`quorate_ends_total{outcome="cancelled",tree="t"} 1`,
		`quorate_lease_duration_seconds_count{tree="t"} 2`,
		`quorate_lease_duration_seconds_sum{tree="t"} 140`,
		`quorate_lease_duration_seconds_bucket{tree="t",le="60"} 0`,
		`quorate_lease_duration_seconds_bucket{tree="t",le="120"} 2`,
		`quorate_wait_duration_seconds_count{tree="t"} 1`,
		`quorate_wait_duration_seconds_sum{tree="t"} 70`,
	)
}

// TestAnAllocationCountsOnceInATree: an allocation counts once in each of its trees, for any number of claims there.
func TestAnAllocationCountsOnceInATree(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(
		t,
		quota.ApplyTrees{
			Trees: []quota.TreeSpec{
				{
					Name: "u", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
					Nodes: []quota.NodeSpec{{}},
				},
			},
		},
	)
	wide := want("wide", "a")
	wide.Claims = append(wide.Claims, want("", "c").Claims[0], quota.Claim{Tree: "u", Amounts: wide.Claims[0].Amounts})
	s.do(t, wide)
	s.tick(t, 0)
	s.expectOnPage(t, `quorate_grants_total{from="request",tree="t"} 1`,
		`quorate_grants_total{from="request",tree="u"} 1`,
		`quorate_held_claims{tree="t"} 2`, `quorate_held_claims{tree="u"} 1`, `quorate_held_allocations 1`)
	s.expect(t, node(""), "08:00 held 2 waiting 0 granted 2 released 0 lost 0 longest 0")
}

// TestATreeThatIsGoneLeavesNothing: the page has no metrics of a deleted tree.
func TestATreeThatIsGoneLeavesNothing(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"), quota.Release{ID: "one"})
	s.tick(t, 0)
	s.CountDenial("t", "resource")
	s.CountDenial("t", "hold")
	s.expectOnPage(t, `quorate_ends_total{outcome="released",tree="t"} 1`, `quorate_denials_total{reason="hold",tree="t"} 1`)
	s.do(t, quota.DeleteTree{Tree: "t"})
	s.tick(t, 0)
	if page := s.page(t); strings.Contains(page, `tree="t"`) {
		t.Errorf("the page still knows the tree:\n%s", page)
	}
}

// TestANewTreeKeepsItsDenials: a sample that was begun before a tree was made does not remove what was counted for it
// meanwhile. A later one does if there is no such tree.
func TestANewTreeKeepsItsDenials(t *testing.T) {
	s := newScene(t, Bounds{})
	s.metrics.denials.beginSample()
	s.CountDenial("new", "resource")
	s.metrics.forgetTrees(func(string) bool { return false })
	s.expectOnPage(t, `quorate_denials_total{reason="resource",tree="new"} 1`)
	s.tick(t, 0)
	if page := s.page(t); strings.Contains(page, `tree="new"`) {
		t.Errorf("the page still knows the tree:\n%s", page)
	}
}

// TestItemsOnThePage: the page has items by tree, resource and state.
func TestItemsOnThePage(t *testing.T) {
	s := newScene(t, Bounds{})
	s.applySample(
		sample{
			items: []quota.ItemCount{
				{Tree: "t", Resource: "gpu", States: []quota.NamedCount{
					{Name: "dirty", Count: 1},
					{Name: "free", Count: 2},
				}},
			},
		}, stepAt(s.wall.now()),
	)
	s.expectOnPage(
		t,
		`quorate_items{resource="gpu",state="dirty",tree="t"} 1`,
		`quorate_items{resource="gpu",state="free",tree="t"} 2`,
	)
}
