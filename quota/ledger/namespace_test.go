package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// sharedIDs begins the ids of a namespace that all callers of a guarded ledger may use.
const sharedIDs = "frontend/test "

func sharedID(id string) string {
	if strings.Contains(id, " ") {
		return id
	}
	return sharedIDs + id
}

// inShared moves the ids of a command from the default namespace to one that all callers may use. Most tests of a
// guarded
// ledger ask what a caller may do to an id that others have, too.
func inShared(c quota.Command) quota.Command {
	switch c := c.(type) {
	case quota.Allocate:
		c.ID = sharedID(c.ID)
		return c
	case quota.Release:
		c.ID = sharedID(c.ID)
		return c
	case quota.Renew:
		c.ID = sharedID(c.ID)
		return c
	case quota.Resize:
		c.ID = sharedID(c.ID)
		return c
	case quota.Transfer:
		c.ID = sharedID(c.ID)
		return c
	case quota.Split:
		c.ID, c.Parts = sharedID(c.ID), slices.Clone(c.Parts)
		for i := range c.Parts {
			c.Parts[i].ID = sharedID(c.Parts[i].ID)
		}
		return c
	case quota.Confirm:
		c.ID = sharedID(c.ID)
		return c
	case quota.Cancel:
		c.ID = sharedID(c.ID)
		return c
	}
	return c
}

// applyAs is guarded.apply with the ids as they are.
func (g *guarded) applyAs(account string, c quota.Command) ledger.Outcome {
	g.t.Helper()
	g.index++
	return g.ledger.ApplyFrom(quota.Stamp{Wall: wallNow}, ledger.Origin{Caller: callerOf(account), Index: g.index}, c)
}

// TestEqualIDsInNamespaces: two callers have the same id, and each names its own. An id in the namespace of another
// caller is one that does not exist, and needs the right to operate to be made.
func TestEqualIDsInNamespaces(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	const node = "atlas/physics/higgs"
	for _, account := range []string{"hans", "heidi"} {
		own := claimCores("account/"+account+" job-1", node, 1)
		if out := g.applyAs(account, own); out.Refused != nil || !out.Decision.Granted || out.Repeated {
			t.Fatalf("%s: %+v", account, out)
		}
		if out := g.applyAs(account, own); out.Refused != nil || !out.Repeated {
			t.Fatalf("%s repeats: %+v", account, out)
		}
	}
	for _, id := range []string{"account/hans job-1", "account/hans job-2"} { // held, and unknown
		out := g.applyAs("heidi", claimCores(id, node, 1))
		if out.Refused == nil || out.Refused.Kind != quota.Forbidden || out.Refused.Field != "namespace" ||
			out.Refused.Verb != access.HoldOperate {
			t.Errorf("heidi allocates %q: %+v", id, out)
		}
		if out = g.applyAs("heidi", quota.Release{ID: id}); out.Refused == nil || out.Refused.Kind != quota.NotFound {
			t.Errorf("heidi releases %q: %+v", id, out)
		}
	}
	if out := g.applyAs("hans", claimCores("job-1", node, 1)); out.Refused == nil || out.Refused.Field != "namespace" {
		t.Errorf("hans allocates in the default namespace: %+v", out)
	}
	if out := g.applyAs("root", claimCores("account/hans job-3", node, 1)); out.Refused != nil {
		t.Errorf("an operator allocates for hans: %v", out.Refused)
	}
	if out := g.applyAs("hans", claimCores("account/hans job-3", node, 1)); out.Refused == nil ||
		out.Refused.Kind != quota.IDTaken {
		t.Errorf("hans repeats the operator's: %+v", out)
	}
	if out := g.applyAs("root", quota.Release{ID: "account/heidi job-1"}); out.Refused != nil {
		t.Errorf("an operator releases: %v", out.Refused)
	}
	for id, state := range map[string]quota.State{
		"account/hans job-1": quota.Held, "account/heidi job-1": quota.Released,
	} {
		if info, err := g.ledger.Reader().Allocation(id); err != nil || info.State != state {
			t.Errorf("%q is %v, %v", id, info.State, err)
		}
	}
	list, refused := g.ledger.Reader().Allocations(quota.AllocationFilter{Namespace: "account/hans", IDPrefix: "job"},
		0, 10)
	if refused != nil || len(list.Allocations) != 2 {
		t.Errorf("the namespace of hans has %+v, %v", list, refused)
	}
	if err := g.ledger.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestBadNamespaces: one pair has one name, so another spelling of it is refused.
func TestBadNamespaces(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: cernTree()})
	for id, field := range map[string]string{
		"default a": "id", " a": "namespace", "a b c": "id", "a*b c": "namespace", "a ": "id",
		strings.Repeat("n", 257) + " a": "namespace", "n " + strings.Repeat("a", 129): "id", quota.DrainedBy: "id",
	} {
		out := l.Apply(quota.Stamp{}, claimCores(id, "atlas/physics/higgs", 1))
		if out.Refused == nil || out.Refused.Kind != quota.Invalid || out.Refused.Field != field {
			t.Errorf("%q: %+v", id, out.Refused)
		}
	}
	longest := strings.Repeat("n", quota.MaxNamespace) + " " + strings.Repeat("a", quota.MaxID)
	if out := l.Apply(quota.Stamp{}, claimCores(longest, "atlas/physics/higgs", 1)); out.Refused != nil {
		t.Errorf("the longest: %v", out.Refused)
	}
	split := quota.Split{ID: longest, Parts: []quota.Part{{ID: "elsewhere"}}}
	if out := l.Apply(quota.Stamp{}, split); out.Refused == nil || out.Refused.Field != "parts[0].id" {
		t.Errorf("a part in another namespace: %+v", out.Refused)
	}
}
