package activity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/quota"
)

// TestPagesOfEvents: a page is recorded as its events one by one would be, whatever is held where and however it ends.
func TestPagesOfEvents(t *testing.T) {
	s, single := newScene(t, Bounds{}), newScene(t, Bounds{})
	s.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{}, {Path: "a"}, {Path: "a/b"}, {Path: "c"}},
	}}})
	random := rand.New(rand.NewPCG(1, 2))
	var held []string
	for i := range 400 {
		id, place := fmt.Sprint("a-", i), []string{"a", "a/b", "c"}[random.IntN(3)]
		request := want(id, place)
		switch random.IntN(4) {
		case 0:
			request = lease(id, place, 60_000)
		case 1:
			if place == "c" {
				break
			}
			request.Claims = append(request.Claims, want(id, "c").Claims...)
		}
		s.do(t, request)
		if held = append(held, id); len(held) > 5 {
			s.pass(20 * time.Second)
			s.do(t, quota.Expire{Most: 3})
			one := random.IntN(len(held))
			if s.ledger.Reader().Counts().Held > 0 {
				s.release(t, held[one])
			}
			held = slices.Delete(held, one, one+1)
		}
	}
	page := s.news
	s.recordEvents(page, 1)
	for i := range page {
		single.recordEvents(page[i:i+1], 1)
	}
	for _, path := range []string{"", "a", "a/b", "c"} {
		got, want := s.nodes.findSeries(node(path)), single.nodes.findSeries(node(path))
		if got == nil || want == nil || !slices.Equal(got.counts.entries, want.counts.entries) {
			t.Errorf("%q: %+v, one by one %+v", path, got, want)
		}
	}
	if got, want := s.page(t), single.page(t); got != want || !strings.Contains(got, `outcome="expired"`) {
		t.Errorf("the metrics are\n%s\none by one\n%s", got, want)
	}
}

func (n *fakeNode) release(t testing.TB, id string) {
	t.Helper()
	if info, unknown := n.ledger.Reader().Allocation(id); unknown == nil && !info.Ended {
		n.do(t, quota.Release{ID: id})
	}
}
