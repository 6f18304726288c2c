package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// inhabited is a ledger in which a and b below it hold something, leases among it, and others wait.
func inhabited(t *testing.T) *player {
	t.Helper()
	p := newPlayer(false)
	for _, command := range [][]string{
		{"apply", "tree t resources=cores cores=10", "node a cores=6", "node a/b", "node a-1", "node c"},
		{"apply", "tree u resources=ram ram=5"},
		{"tick 1s"},
		{"allocate one t:a cores=1"},
		{"allocate two t:a/b cores=5 t:a cores=0 @ttl=1m"},
		{"allocate both t:c cores=1 u ram=5"},
		{"allocate next t:a/b cores=1 u ram=1 @wait=5m"},
		{"allocate last t:a cores=1 @wait=5m"},
		{"allocate side t:a-1 cores=1"},
		{"allocate room t:c cores=1 @ttl=1m @reserve=10s"},
	} {
		if _, err := p.play(command); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestClaimsAreCounted where they are, once each, on pages of any size.
func TestClaimsAreCounted(t *testing.T) {
	v := inhabited(t).ledger.Reader()
	want := []quota.NamedCount{
		{Name: "a", Count: 2},
		{Name: "a/b", Count: 1},
		{Name: "a-1", Count: 1},
		{Name: "c", Count: 2},
	}
	one := func(resource string) quota.Vector { return quota.Vector{{Resource: resource, Amount: 1}} }
	waiting := []quota.WaitingClaim{
		{Tree: "t", Node: "a/b", Amounts: one("cores")},
		{Tree: "u", Amounts: one("ram")},
		{Tree: "t", Node: "a", Amounts: one("cores")},
	}
	for size := 1; size < 8; size++ {
		var held []quota.NamedCount
		for next, more := "", false; ; {
			page, refused := v.HeldClaims("t", more, next, size)
			if refused != nil {
				t.Fatal(refused)
			}
			held = append(held, page.Nodes...)
			if next, more = page.Next, true; !page.More {
				break
			}
		}
		if diff := cmp.Diff(want, held); diff != "" {
			t.Errorf("held, by %d: want (-), got (+):\n%s", size, diff)
		}
		var waits []quota.WaitingClaim
		for list, next := v.WaitingClaims(nil, size); ; list, next = v.WaitingClaims(next, size) {
			waits = append(waits, list...)
			if next == nil {
				break
			}
		}
		if diff := cmp.Diff(waiting, waits); diff != "" {
			t.Errorf("waiting, by %d: want (-), got (+):\n%s", size, diff)
		}
	}
	if _, refused := v.HeldClaims("x", false, "", 1); refused == nil || refused.Kind != quota.NotFound {
		t.Errorf("an unknown tree: %v", refused)
	}
}

// TestClaimsOnItemsAreCounted by resource, and those who wait say what for.
func TestClaimsOnItemsAreCounted(t *testing.T) {
	p := newPlayer(false)
	for _, command := range [][]string{
		{"apply", "tree t resources=account:items,cores,slot:items", "items account a1 a2 a3", "items slot s1"},
		{"allocate one t account=2:"},
		{"allocate two t account=1: cores=1"},
		{"allocate three t account=1: @wait=5m"},
	} {
		if _, err := p.play(command); err != nil {
			t.Fatal(err)
		}
	}
	counts, refused := p.ledger.Reader().ItemClaims("t")
	if diff := cmp.Diff([]quota.NamedCount{{Name: "account", Count: 2}}, counts); diff != "" || refused != nil {
		t.Errorf("%v; want (-), got (+):\n%s", refused, diff)
	}
	list, _ := p.ledger.Reader().WaitingClaims(nil, 10)
	if len(list) != 1 || len(list[0].Picks) != 1 || list[0].Picks[0].Resource != "account" {
		t.Errorf("waiting: %v", list)
	}
	if _, refused := p.ledger.Reader().ItemClaims("x"); refused == nil || refused.Kind != quota.NotFound {
		t.Errorf("an unknown tree: %v", refused)
	}
}

// TestLeasesAreCounted from their grant or confirmation until they end; the ledger's own checks compare with a recount.
func TestLeasesAreCounted(t *testing.T) {
	p := inhabited(t)
	for _, step := range []struct {
		play string
		want int
	}{
		{"tick 1s", 1},
		{"renew two", 1},
		{"confirm room", 2},
		{"renew room", 2},
		{"release two", 1},
		{"allocate three t:c cores=1 @ttl=5s", 2},
		{"tick 59s", 2},
		{"expire 10", 1},
		{"tick 1s", 1},
		{"expire 10", 0},
	} {
		if _, err := p.play([]string{step.play}); err != nil {
			t.Fatal(err)
		}
		if got := p.ledger.Reader().Counts().Leases; got != step.want {
			t.Errorf("%d leases after %s, want %d", got, step.play, step.want)
		}
		if err := p.ledger.Check(); err != nil {
			t.Errorf("after %s: %v", step.play, err)
		}
	}
}

// TestGrantsFromTheQueueSaySinceWhen they waited; other facts do not.
func TestGrantsFromTheQueueSaySinceWhen(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	at := quota.Instant(0)
	apply := func(c quota.Command) []ledger.Fact {
		at += 1000
		if out := l.Apply(quota.Stamp{At: at}, c); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		return l.TakeFacts()
	}
	apply(quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.Limit{Kind: quota.Limited, Amount: 1}}}},
		},
	}}})
	claims := []quota.Claim{{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 1}}}}
	apply(quota.Allocate{ID: "one", Claims: claims})
	waits := apply(quota.Allocate{ID: "two", Claims: claims, Mode: quota.Wait})
	since := at
	served := apply(quota.Release{ID: "one"})
	if len(waits) != 1 || waits[0].Since != 0 || len(served) != 2 || served[0].Since != 0 {
		t.Fatalf("got %v, then %v", waits, served)
	}
	if f := served[1]; f.Kind != ledger.FactGranted || f.Allocation.ID() != "two" || f.Since != since {
		t.Errorf("got %v, want a grant since %d", f, since)
	}
}
