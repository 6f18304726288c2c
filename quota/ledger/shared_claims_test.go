package ledger

import (
	"reflect"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func sharingLedger(t *testing.T, policy string) *Ledger {
	t.Helper()
	l := New(quota.DefaultBounds())
	applySharing(t, l, policy, "a", "b")
	return l
}

func applySharing(t *testing.T, l *Ledger, policy string, leaves ...string) {
	t.Helper()
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Policy: policy, Limits: limitTo(100)}},
	}
	for _, leaf := range leaves {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: leaf, Limits: limitTo(50)})
	}
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
}

func limitTo(most quota.Amount) []quota.ResourceLimit {
	return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(most)}}
}

func holdCPU(t *testing.T, l *Ledger, id, node string, amount quota.Amount) *state.Allocation {
	t.Helper()
	out := l.Apply(quota.Stamp{}, quota.Allocate{ID: id, Claims: []quota.Claim{{
		Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: amount}},
	}}})
	if out.Allocation == nil {
		t.Fatalf("%s was not granted: %+v", id, out)
	}
	return out.Allocation
}

// TestSharedClaims: equal claims are one piece of memory, other claims are not, and a tombstone shares them too.
func TestSharedClaims(t *testing.T) {
	l := sharingLedger(t, "capped")
	first := holdCPU(t, l, "first", "a", 1)
	same := holdCPU(t, l, "same", "a", 1)
	if &first.Claims[0] != &same.Claims[0] {
		t.Error("equal claims are not shared")
	}
	for id, other := range map[string]*state.Allocation{
		"amount": holdCPU(t, l, "amount", "a", 2), "node": holdCPU(t, l, "node", "b", 1),
	} {
		if &first.Claims[0] == &other.Claims[0] {
			t.Errorf("claims of another %s are shared", id)
		}
	}
	ended := l.Apply(quota.Stamp{}, quota.Release{ID: "same"}).Allocation
	if &first.Claims[0] != &ended.Claims[0] {
		t.Error("a tombstone does not share its claims")
	}
}

// TestSharedClaimsThatChange: details that one allocation gets later do not appear in those that shared its claims.
func TestSharedClaimsThatChange(t *testing.T) {
	l := sharingLedger(t, "capped")
	first := holdCPU(t, l, "first", "a", 1)
	holdCPU(t, l, "second", "a", 1)
	ended := l.Apply(quota.Stamp{}, quota.Release{ID: "second"}).Allocation
	holdCPU(t, l, "third", "a", 1)
	applySharing(t, l, "borrowing", "a", "b")
	if first.Claims[0].More != nil || ended.Claims[0].More != nil {
		t.Error("an arrival number was written into shared claims")
	}
	seqs := map[uint64]bool{}
	for _, id := range []string{"first", "third"} {
		seqs[l.state.Allocations.ByID.Find(id).Claims[0].ArrivalSeq()] = true
	}
	if len(seqs) != 2 || seqs[0] {
		t.Errorf("the arrival numbers are %v, want two", seqs)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestClaimsKeys: records with one key read the same but for the record itself, and details have no key.
func TestClaimsKeys(t *testing.T) {
	l := sharingLedger(t, "capped")
	first, same := holdCPU(t, l, "first", "a", 1), holdCPU(t, l, "same", "a", 1)
	ended := l.Apply(quota.Stamp{At: 5}, quota.Release{ID: "first"}).Allocation
	key, comparable := first.ClaimsKey()
	for _, a := range []*state.Allocation{same, ended} {
		if got, ok := a.ClaimsKey(); !comparable || !ok || got != key {
			t.Errorf("%s has another key", a.ID())
		}
		if got, want := a.InfoWithClaims(first.Info().Claims), a.Info(); !reflect.DeepEqual(got, want) {
			t.Errorf("with the claims of another record %+v, want %+v", got, want)
		}
	}
	for _, other := range []*state.Allocation{holdCPU(t, l, "more", "a", 2), holdCPU(t, l, "there", "b", 1)} {
		if got, _ := other.ClaimsKey(); got == key {
			t.Errorf("%s has the same key", other.ID())
		}
	}
	soft := sharingLedger(t, "borrowing")
	if _, comparable := holdCPU(t, soft, "soft", "a", 1).ClaimsKey(); comparable {
		t.Error("claims with a place in the order of arrival have a key")
	}
	if _, comparable := (&state.Allocation{}).ClaimsKey(); comparable {
		t.Error("no claims have a key")
	}
}
