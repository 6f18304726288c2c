package ledger

import (
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// hasRule is true if the parent approves requests for limits of the node by a rule.
func (n *node) hasRule() bool {
	return n.parent != nil && n.parent.spec.AutoApprove != quota.AutoApprove{}
}

// planByRule plans a new request if the rule of the parent approves it. Otherwise the text says why not, as far as the
// caller may know; it is empty if there is no rule. The rule stands for those who wrote it, who may set the limits of
// all children, so the rights of the caller are not asked.
func (g guard) planByRule(r *quota.LimitRequest, n *node) (plan, string) {
	if !n.hasRule() {
		return plan{}, ""
	}
	rule, limits := n.parent.spec.AutoApprove, n.changedLimits(r.Limits)
	for _, wanted := range limits {
		if why := n.beyondRule(rule, wanted); why != "" {
			return plan{}, why
		}
	}
	if why := g.tooSoon(rule, n); why != "" {
		return plan{}, why
	}
	p := g.plans.planLimits(quota.SetLimits{Tree: r.Tree, Node: r.Node, Limits: r.Limits})
	why := ""
	if p.refused != nil {
		why = p.refused.Text
	} else if rule.WithinHeadroom {
		why = n.beyondHeadroom(limits)
	}
	if why != "" && g.caller.rights != nil && !g.may(access.ConfigRead, n.parent) {
		why = "the limits above do not leave room for it" // more would tell of nodes that the caller may not see
	}
	return p, why
}

// changedLimits are the limits that are not those of the node already.
func (n *node) changedLimits(limits []quota.ResourceLimit) []quota.ResourceLimit {
	var changed []quota.ResourceLimit
	for _, wanted := range limits {
		if wanted.Limit != n.limits[n.tree.resource(wanted.Resource).index] {
			changed = append(changed, wanted)
		}
	}
	return changed
}

// beyondRule says why a limit is not a raise that the rule allows; empty if it is one.
func (n *node) beyondRule(rule quota.AutoApprove, wanted quota.ResourceLimit) string {
	resource := n.tree.resource(wanted.Resource)
	present, unit := n.limits[resource.index], resource.Unit
	switch {
	case present.Kind != quota.Limited || wanted.Limit.Kind != quota.Limited:
		return fmt.Sprintf("a rule raises amounts only, and %s of %s is %s now and would be %s", wanted.Resource, n.place(),
			present.In(unit), wanted.Limit.In(unit))
	case wanted.Limit.Amount < present.Amount:
		return fmt.Sprintf("a rule raises limits only, and %s of %s would fall from %s to %s", wanted.Resource, n.place(),
			present.In(unit), wanted.Limit.In(unit))
	}
	percent := quota.Amount(rule.AtMost)
	most := present.Amount + present.Amount/100*percent + present.Amount%100*percent/100
	if wanted.Limit.Amount > most {
		return fmt.Sprintf("the rule raises limits by %d%% at most: %s of %s may be up to %s, not %s", rule.AtMost,
			wanted.Resource, n.place(), quota.FormatAmount(most, unit), wanted.Limit.In(unit))
	}
	return ""
}

// tooSoon says how long the rule must wait since it last approved a request of the node; empty if it need not.
func (g guard) tooSoon(rule quota.AutoApprove, n *node) string {
	next := n.raisedByRule + quota.Instant(rule.Every)
	if n.raisedByRule == 0 || g.now.At >= next {
		return ""
	}
	return fmt.Sprintf("the rule approves one request for %s per %s; it may approve the next one %s from now", n.place(),
		daysText(rule.Every), daysText(roundUp(quota.Span(next-g.now.At))))
}

// beyondHeadroom says why the limits of the children would add up to more than that of the parent; empty if they would
// not.
func (n *node) beyondHeadroom(limits []quota.ResourceLimit) string {
	for _, wanted := range limits {
		resource := n.tree.resource(wanted.Resource)
		i := resource.index
		bound := n.parent.effective(i)
		if bound.Kind != quota.Limited {
			return fmt.Sprintf("the rule keeps within the headroom of %s, which has no limit of %s", n.parent.place(),
				wanted.Resource)
		}
		room := bound.Amount - wanted.Limit.Amount
		for _, sibling := range n.parent.children {
			if limit := sibling.limits[i]; sibling != n && limit.Kind == quota.Limited && room >= 0 {
				room -= limit.Amount
			}
		}
		if room < 0 {
			return fmt.Sprintf("the rule keeps within the headroom of %s: its limit of %s is %s, and those of its children "+
				"would add up to more", n.parent.place(), wanted.Resource, resource.amountText(bound.Amount))
		}
	}
	return ""
}

// applyByRule sets the limits of a new request, which the rule of the parent approves.
func (g guard) applyByRule(r *quota.LimitRequest, n *node, p plan, m mode) Outcome {
	_, present, _ := g.forest.requestTarget(r)
	r.Approvals = []quota.Approval{{User: quota.AutoApprover, Digest: requestDigest(r, present), Wall: g.now.Wall}}
	if m == carryOut {
		n.raisedByRule = g.now.At
	}
	return g.installRequest(nil, r, quota.AutoApprover, p, m)
}

// roundUp rounds a span that is left up to hours, or if it is shorter to minutes.
func roundUp(s quota.Span) quota.Span {
	unit := oneHour
	if s < oneHour {
		unit = oneHour / 60
	}
	return (s + unit - 1) / unit * unit
}
