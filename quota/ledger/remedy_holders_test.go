package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestRemediesForHolders: where users, groups and applications are limited too, what is advised admits the request, and
// nothing of it can be left out; no raise can be smaller; and where no release is advised, none of up to two would do.
func TestRemediesForHolders(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			l.Apply(quota.Stamp{}, quotatest.HoldersTree(name).Draw(t, "tree"))
		}
		for i := range 12 {
			request := quotatest.HoldersRequests(fmt.Sprint("i", i)).Draw(t, "request")
			if out := l.Sandbox().Explain(request); out.Decision != nil && !out.Decision.Granted {
				r := &remedied{ledger: l, request: request, denied: *out.Decision, borrows: true}
				r.checkHoldersRaises(t, out.Decision.Remedy.Raises)
				r.checkReleases(t, out.Decision.Remedy.Releases)
				if len(out.Decision.Remedy.Releases) == 0 && !r.runs(t) {
					r.checkHopeless(t)
				}
			}
			l.Apply(quota.Stamp{}, request)
		}
	})
}

// runs is true if the request's application holds something: then its end would change more than the room.
func (r *remedied) runs(t *rapid.T) bool {
	return slices.ContainsFunc(r.held(t), func(a quota.AllocationInfo) bool {
		return a.Principal.User == r.request.Principal.User &&
			a.Principal.Application == r.request.Principal.Application
	})
}

func (r *remedied) held(t *rapid.T) []quota.AllocationInfo {
	page, refused := r.ledger.Reader().Allocations(quota.AllocationFilter{}, 0, 100)
	if refused != nil {
		t.Fatal(refused)
	}
	return page.Allocations
}

// checkHopeless tries every allocation and every two.
func (r *remedied) checkHopeless(t *rapid.T) {
	held := r.held(t)
	for i, a := range held {
		for _, b := range held[i:] {
			ids := slices.Compact([]string{a.ID, b.ID})
			if r.admitsAfter(t, releases(ids)) {
				t.Fatalf("nothing is advised to release, but without %v the request is admitted: %s", ids,
					r.denied.Explain())
			}
		}
	}
}

func (r *remedied) checkHoldersRaises(t *rapid.T, raises []quota.Raise) {
	if !r.admitsAfter(t, r.raisedTrees(t, raises)) {
		t.Fatalf("the raises %+v do not admit %+v: %s", raises, r.request, r.denied.Explain())
	}
	for i, raise := range raises {
		lower := slices.Clone(raises)
		lower[i].To--
		if raise.Holder.Kind != quota.TheNode && !sharesEntry(raises, i) && r.admitsAfter(t, r.raisedTrees(t, lower)) {
			t.Fatalf("%+v is more than needed among %+v", raise, raises)
		}
	}
}

// sharesEntry is true if another raise may be one of the same entry.
func sharesEntry(raises []quota.Raise, i int) bool {
	return slices.ContainsFunc(slices.Delete(slices.Clone(raises), i, i+1), func(other quota.Raise) bool {
		return other.Tree == raises[i].Tree && other.Node == raises[i].Node && other.Holder.Kind != quota.TheNode
	})
}

// raisedTrees carries out raises of any kind.
func (r *remedied) raisedTrees(t *rapid.T, raises []quota.Raise) []quota.Command {
	var c quota.ApplyTrees
	for _, name := range []string{"t", "u"} {
		spec, refused := r.ledger.Reader().Tree(name)
		if refused != nil {
			t.Fatal(refused)
		}
		for _, raise := range raises {
			if raise.Tree == name {
				raiseIn(quotatest.FindNode(spec, raise.Node), raise)
			}
		}
		c.Trees = append(c.Trees, spec)
	}
	return []quota.Command{c}
}

func raiseIn(n *quota.NodeSpec, raise quota.Raise) {
	if raise.Holder.Kind != quota.TheNode {
		n.Principals = slices.Clone(n.Principals)
		raiseFor(quotatest.PrincipalLimit(n, raise.Holder), raise)
		return
	}
	switch raise.Kind {
	case quota.OfApplications:
		n.Applications = quota.AtMost(raise.To)
	case quota.OfBorrowing:
		n.Borrow = withLimit(n.Borrow, raise)
	case quota.OfResource:
		n.Limits = withLimit(n.Limits, raise)
	case quota.OfItems, quota.OfQueue, quota.OfHold:
		panic("no request here wants items or waits, and no node is on hold")
	}
}

func raiseFor(entry *quota.PrincipalLimit, raise quota.Raise) {
	if raise.Kind == quota.OfApplications {
		entry.Applications = quota.AtMost(max(entry.Applications.Amount, raise.To))
		return
	}
	entry.Limits = slices.Clone(entry.Limits)
	i := slices.IndexFunc(entry.Limits, func(c quota.Component) bool { return c.Resource == raise.Resource })
	entry.Limits[i].Amount = max(entry.Limits[i].Amount, raise.To) // it may be the entry of others too
}

func withLimit(limits []quota.ResourceLimit, raise quota.Raise) []quota.ResourceLimit {
	list := slices.DeleteFunc(slices.Clone(limits),
		func(l quota.ResourceLimit) bool { return l.Resource == raise.Resource })
	list = append(list, quota.ResourceLimit{Resource: raise.Resource, Limit: quota.AtMost(raise.To)})
	slices.SortFunc(list, func(a, b quota.ResourceLimit) int { return strings.Compare(a.Resource, b.Resource) })
	return list
}
