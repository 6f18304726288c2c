package permit

import (
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func hasRule(n *state.Node) bool {
	return n.Parent != nil && n.Parent.Spec.AutoApprove != quota.AutoApprove{}
}

// planByRule plans a new request if the rule of the parent approves it. Otherwise the text says why not, as far as the
// caller may know; it is empty if there is no rule. The rule stands for those who wrote it, who may set the limits of
// all children, so the rights of the caller are not asked.
func (g Guard) planByRule(r *quota.LimitRequest, n *state.Node) (configure.Plan, string) {
	if !hasRule(n) {
		return configure.Plan{}, ""
	}
	rule, limits := n.Parent.Spec.AutoApprove, changedLimits(n, r.Limits)
	for _, wanted := range limits {
		if why := beyondRule(n, rule, wanted); why != "" {
			return configure.Plan{}, why
		}
	}
	if why := g.tooSoon(rule, n); why != "" {
		return configure.Plan{}, why
	}
	p := g.plans.PlanLimits(quota.SetLimits{Tree: r.Tree, Node: r.Node, Limits: r.Limits})
	why := ""
	if p.Refused != nil {
		why = p.Refused.Text
	} else if rule.WithinHeadroom {
		why = beyondHeadroom(n, limits)
	}
	if why != "" && g.Caller.Rights != nil && !g.May(access.ConfigRead, n.Parent) {
		why = "the limits above do not leave room for it" // more would tell of nodes that the caller may not see
	}
	return p, why
}

func changedLimits(n *state.Node, limits []quota.ResourceLimit) []quota.ResourceLimit {
	var changed []quota.ResourceLimit
	for _, wanted := range limits {
		if wanted.Limit != n.Limits[n.Tree.Resource(wanted.Resource).Index] {
			changed = append(changed, wanted)
		}
	}
	return changed
}

// beyondRule is empty if the limit is a raise that the rule allows.
func beyondRule(n *state.Node, rule quota.AutoApprove, wanted quota.ResourceLimit) string {
	resource := n.Tree.Resource(wanted.Resource)
	present, unit := n.Limits[resource.Index], resource.Unit
	switch {
	case present.Kind != quota.Limited || wanted.Limit.Kind != quota.Limited:
		return fmt.Sprintf("a rule raises amounts only, and %s of %s is %s now and would be %s", wanted.Resource, n.Place(),
			present.In(unit), wanted.Limit.In(unit))
	case wanted.Limit.Amount < present.Amount:
		return fmt.Sprintf("a rule raises limits only, and %s of %s would fall from %s to %s", wanted.Resource, n.Place(),
			present.In(unit), wanted.Limit.In(unit))
	}
	percent := quota.Amount(rule.AtMost)
	most := present.Amount + present.Amount/100*percent + present.Amount%100*percent/100
	if wanted.Limit.Amount > most {
		return fmt.Sprintf("the rule raises limits by %d%% at most: %s of %s may be up to %s, not %s", rule.AtMost,
			wanted.Resource, n.Place(), quota.FormatAmount(most, unit), wanted.Limit.In(unit))
	}
	return ""
}

// tooSoon says how long the rule must wait since it last approved a request of the node; empty if it need not.
func (g Guard) tooSoon(rule quota.AutoApprove, n *state.Node) string {
	next := n.RaisedByRule + quota.Instant(rule.Every)
	if n.RaisedByRule == 0 || g.Now.At >= next {
		return ""
	}
	return fmt.Sprintf("the rule approves one request for %s per %s; it may approve the next one %s from now", n.Place(),
		configure.DaysText(rule.Every), configure.DaysText(roundUp(quota.Span(next-g.Now.At))))
}

// beyondHeadroom is empty if the limits of the children would not add up to more than that of the parent.
func beyondHeadroom(n *state.Node, limits []quota.ResourceLimit) string {
	for _, wanted := range limits {
		resource := n.Tree.Resource(wanted.Resource)
		i := resource.Index
		bound := n.Parent.Effective(i)
		if bound.Kind != quota.Limited {
			return fmt.Sprintf("the rule keeps within the headroom of %s, which has no limit of %s", n.Parent.Place(),
				wanted.Resource)
		}
		room := bound.Amount - wanted.Limit.Amount
		for _, sibling := range n.Parent.Children {
			if limit := sibling.Limits[i]; sibling != n && limit.Kind == quota.Limited && room >= 0 {
				room -= limit.Amount
			}
		}
		if room < 0 {
			return fmt.Sprintf("the rule keeps within the headroom of %s: its limit of %s is %s, and those of its children "+
				"would add up to more", n.Parent.Place(), wanted.Resource, configure.AmountText(resource, bound.Amount))
		}
	}
	return ""
}

func (g Guard) applyByRule(r *quota.LimitRequest, n *state.Node, p configure.Plan, m state.Mode) state.Outcome {
	_, present, _ := requestTarget(g.forest, r)
	r.Approvals = []quota.Approval{{User: quota.AutoApprover, Digest: state.RequestDigest(r, present), Wall: g.Now.Wall}}
	if m == state.CarryOut {
		n.RaisedByRule = g.Now.At
	}
	return g.installRequest(nil, r, quota.AutoApprover, p, m)
}

// roundUp rounds a span that is left up to hours, or if it is shorter to minutes.
func roundUp(s quota.Span) quota.Span {
	unit := configure.OneHour
	if s < configure.OneHour {
		unit = configure.OneHour / 60
	}
	return (s + unit - 1) / unit * unit
}
