package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// keepAccess completes the text of a tree by the bindings, the rules auto-approve and the thresholds that its nodes
// have now, under the same paths, and by what tenants see of it, the approvals that it needs, and whether requests
// need a user. The text must not have any of its own: which of the two counts would depend on what exists.
func (f *forest) keepAccess(w *treeChange) *quota.Error {
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
			return quota.Errorf(quota.Invalid, nodeField(w.field, i)+".bindings",
				"bindings are kept as they are with keep_access; leave them out")
		}
		if n.AutoApprove != (quota.AutoApprove{}) {
			return quota.Errorf(quota.Invalid, nodeField(w.field, i)+".auto_approve",
				"it is kept as it is with keep_access; leave it out")
		}
		if !n.WarnAt.IsZero() {
			return quota.Errorf(quota.Invalid, nodeField(w.field, i)+".warn_at",
				"it is kept as it is with keep_access; leave it out")
		}
	}
	t := f.trees[w.spec.Name]
	if t == nil {
		return nil
	}
	w.spec.TenantsSee, w.spec.Approvals = t.settings.TenantsSee, t.settings.Approvals
	w.spec.RequirePrincipal = t.settings.RequirePrincipal
	w.spec.Nodes = slices.Clone(w.spec.Nodes)
	for i := range w.spec.Nodes {
		if n := t.byPath[w.spec.Nodes[i].Path]; n != nil && !n.dynamic {
			w.spec.Nodes[i].Bindings, w.spec.Nodes[i].AutoApprove = n.spec.Bindings, n.spec.AutoApprove
			w.spec.Nodes[i].WarnAt = n.spec.WarnAt
		}
	}
	return nil
}
