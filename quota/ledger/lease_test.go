package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func leased(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t",
		Resources: []quota.Resource{
			{Name: "r", Unit: quota.Items, Items: &quota.ItemSpec{Names: []string{"a"}, Expired: "dirty"}},
		},
		Nodes: []quota.NodeSpec{{}},
	}}})
	if out := l.Apply(quota.Stamp{At: 1, Wall: 1}, job); out.Allocation == nil {
		t.Fatalf("%+v", out)
	}
	return l
}

var job = quota.Allocate{
	ID: "job", TTL: 10_000,
	Claims: []quota.Claim{{Tree: "t", Picks: []quota.Pick{{Resource: "r", Count: 1}}}},
}

func reloaded(t *testing.T, l *ledger.Ledger, change func(*ledger.AllocationImage)) *ledger.Ledger {
	t.Helper()
	image := l.Snapshot()
	loader := ledger.NewRestorer(quota.DefaultBounds(), image.Header)
	for _, tree := range image.Trees() {
		if err := loader.AddTree(tree); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range image.Revisions() {
		if err := loader.AddRevision(r); err != nil {
			t.Fatal(err)
		}
	}
	for it := range image.Items() {
		if err := loader.AddItem(it); err != nil {
			t.Fatal(err)
		}
	}
	for a := range image.Held() {
		change(&a)
		if err := loader.AddHeld(a); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := loader.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestRenewedTwiceInOneMillisecond: wall clocks may differ where ledger time does not; a ledger that was loaded in
// between must tell the same.
func TestRenewedTwiceInOneMillisecond(t *testing.T) {
	through, loaded := leased(t), leased(t)
	for i, l := range []*ledger.Ledger{through, loaded} {
		l.Apply(quota.Stamp{At: 5, Wall: 5}, quota.Renew{ID: "job"})
		if i == 1 {
			l = reloaded(t, l, func(*ledger.AllocationImage) {})
			loaded = l
		}
		l.Apply(quota.Stamp{At: 5, Wall: 6}, quota.Renew{ID: "job"})
	}
	if diff := cmp.Diff(quotatest.ImageText(through.Snapshot()), quotatest.ImageText(loaded.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if page, refused := through.Reader().Items(quota.ItemFilter{Tree: "t"}, nil, 1, false); refused != nil ||
		page.Items[0].UpdatedWall != 5 {
		t.Errorf("the item was touched at %+v: %v", page, refused)
	}
}

// TestRevoked: nothing moves the end of a lease that has to give way, and then it was preempted.
func TestRevoked(t *testing.T) {
	l := reloaded(t, leased(t), func(a *ledger.AllocationImage) { a.RevokedBy, a.Expires = "other", 2_000 })
	out := l.Apply(quota.Stamp{At: 1_000}, quota.Renew{ID: "job", TTL: 20_000})
	if info := out.Allocation.Info(); info.RevokedBy != "other" || info.ExpiresAt != 2_000 {
		t.Fatalf("renewed to %+v", info)
	}
	if at, waits := l.Reader().NextDue(); !waits || at != 2_000 {
		t.Fatalf("it ends at %d", at)
	}
	l.Apply(quota.Stamp{At: 2_000}, quota.Expire{Most: 1})
	info, refused := l.Reader().Allocation("job")
	if refused != nil || info.State != quota.WasPreempted || info.PreemptedBy != "other" {
		t.Fatalf("it has ended as %+v: %v", info, refused)
	}
	e := l.Reader().Events(quota.EventFilter{Kind: quota.EventPreempted, ID: "job"}, 1).Events
	if len(e) != 1 || e[0].By != "other" {
		t.Fatalf("events: %+v", e)
	}
	if page, refused := l.Reader().Items(quota.ItemFilter{Tree: "t", State: "dirty"}, nil, 1, false); refused != nil ||
		len(page.Items) != 1 {
		t.Fatalf("items: %+v, %v", page, refused)
	}
}

// TestUnclaimed: a lease that the queue has granted lasts its whole time from when its caller comes for it, by asking
// again or by renewing it, and that happens once.
func TestUnclaimed(t *testing.T) {
	for name, come := range map[string]quota.Command{"asked again": job, "renewed": quota.Renew{ID: "job"}} {
		t.Run(name, func(t *testing.T) {
			l := reloaded(t, leased(t), func(a *ledger.AllocationImage) { a.Unclaimed, a.Expires = true, 2_000 })
			out := l.Apply(quota.Stamp{At: 1_000}, come)
			if out.Allocation == nil {
				t.Fatalf("%+v", out)
			}
			if info := out.Allocation.Info(); info.Unclaimed || info.ExpiresAt != 11_000 {
				t.Fatalf("it is %+v", info)
			}
			l.Apply(quota.Stamp{At: 3_000}, job)
			if info, refused := l.Reader().Allocation("job"); refused != nil || info.ExpiresAt != 11_000 {
				t.Fatalf("asked for once more, it is %+v: %v", info, refused)
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLoadItems: an image that contradicts itself is not served.
func TestLoadItems(t *testing.T) {
	image := leased(t).Snapshot()
	for name, spoil := range map[string]func(*ledger.ItemImage, *ledger.AllocationImage){
		"nowhere":         func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.Tree = "u" },
		"no resource":     func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.Resource = "s" },
		"no number":       func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.StateSeq = 0 },
		"a future number": func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.StateSeq = 99 },
		"no state":        func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.State = "" },
		"a bad name":      func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.Name = "a b" },
		"another name":    func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.Name = "b" },
		"data twice":      func(it *ledger.ItemImage, _ *ledger.AllocationImage) { it.Data = make([]quota.Label, 2) },
		"leaves, though":  func(it *ledger.ItemImage, a *ledger.AllocationImage) { it.Leaving, a.Items = true, nil },
		"held twice": func(_ *ledger.ItemImage, a *ledger.AllocationImage) {
			a.Items = append(a.Items, a.Items[0])
		},
		"another item": func(_ *ledger.ItemImage, a *ledger.AllocationImage) {
			a.Items = []ledger.HeldItemImage{{Resource: "r", Name: "c"}}
		},
		"another resource": func(_ *ledger.ItemImage, a *ledger.AllocationImage) {
			a.Items = []ledger.HeldItemImage{{Resource: "s", Name: "a"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			loader := ledger.NewRestorer(quota.DefaultBounds(), image.Header)
			if err := loader.AddTree(image.Trees()[0]); err != nil {
				t.Fatal(err)
			}
			for it := range image.Items() {
				for a := range image.Held() {
					spoil(&it, &a)
					if loader.AddItem(it) != nil || loader.AddHeld(a) != nil {
						return
					}
				}
			}
			if _, err := loader.Finish(); err == nil {
				t.Error("it was loaded")
			}
		})
	}
}

// TestPreemptedReservation: it says until when it was to stand, as one that was cancelled does; when it stands again,
// it does so until then and is not a lease before it is confirmed.
func TestPreemptedReservation(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "gpu", Unit: quota.Count}},
		TreeSettings: quota.TreeSettings{Leases: quota.LeaseSettings{Grace: 30}},
		Nodes: []quota.NodeSpec{
			{Policy: "borrowing", Limits: []quota.ResourceLimit{{Resource: "gpu", Limit: quota.AtMost(1)}}},
		},
	}}})
	ask := func(id string, priority int64) {
		claim := quota.Claim{
			Tree: "t", Amounts: quota.Vector{{Resource: "gpu", Amount: 1}},
			Standing: quota.Standing{Priority: priority},
		}
		out := l.Apply(quota.Stamp{At: 1}, quota.Allocate{
			ID: id, Mode: quota.Reserve, ReserveFor: 20, TTL: 100,
			Claims: []quota.Claim{claim},
		})
		if out.Allocation == nil {
			t.Fatalf("%+v", out)
		}
	}
	check := func(state quota.State) {
		t.Helper()
		a, _ := l.Reader().Allocation("low")
		if a.State != state || a.ReservedUntil != 21 || a.ExpiresAt != 0 {
			t.Errorf("%+v", a)
		}
	}
	ask("low", 0)
	ask("high", 1)
	check(quota.WasPreempted)
	l = reload(t, l)
	check(quota.WasPreempted)
	l.Apply(quota.Stamp{At: 2}, quota.Cancel{ID: "high"})
	check(quota.Reserved)
	l = reload(t, l)
	check(quota.Reserved)
}
