package configure

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// keepAccess completes the text of a tree by the bindings, the rules auto-approve and the thresholds that its nodes
// have now, under the same paths, and by what tenants see of it, the approvals that it needs, and whether requests
// need a user. The text must not have any of its own: which of the two counts would depend on what exists.
func keepAccess(f *state.Forest, w *treeChange) *quota.Error {
	if w.spec.TenantsSee != quota.SeeTotals {
		return quota.Errorf(quota.Invalid, w.field+".tenants_see", "it is kept as it is with keep_access; leave it out")
	}
	if w.spec.Approvals != 0 {
		return quota.Errorf(quota.Invalid, w.field+".approvals", "they are kept as they are with keep_access; leave them out")
	}
	if w.spec.RequirePrincipal {
		return quota.Errorf(quota.Invalid, w.field+".require_principal", "it is kept as it is with keep_access; leave it out")
	}
	for i, n := range w.spec.Nodes {
		if len(n.Bindings) > 0 {
			return quota.Errorf(quota.Invalid, NodeField(w.field, i)+".bindings",
				"bindings are kept as they are with keep_access; leave them out")
		}
		if n.AutoApprove != (quota.AutoApprove{}) {
			return quota.Errorf(quota.Invalid, NodeField(w.field, i)+".auto_approve",
				"it is kept as it is with keep_access; leave it out")
		}
		if !n.Thresholds.IsZero() {
			return quota.Errorf(quota.Invalid, NodeField(w.field, i)+".thresholds",
				"it is kept as it is with keep_access; leave it out")
		}
	}
	t := f.Trees[w.spec.Name]
	if t == nil {
		return nil
	}
	w.spec.TenantsSee, w.spec.Approvals = t.Settings.TenantsSee, t.Settings.Approvals
	w.spec.RequirePrincipal = t.Settings.RequirePrincipal
	w.spec.Nodes = slices.Clone(w.spec.Nodes)
	for i := range w.spec.Nodes {
		if n := t.ByPath[w.spec.Nodes[i].Path]; n != nil && !n.Dynamic {
			w.spec.Nodes[i].Bindings, w.spec.Nodes[i].AutoApprove = n.Spec.Bindings, n.Spec.AutoApprove
			w.spec.Nodes[i].Thresholds = n.Spec.Thresholds
		}
	}
	return nil
}
