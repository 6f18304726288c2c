package oracle

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// goodTree is true if a specification is well formed, whatever the policies make of it.
func (o *oracle) goodTree(next configuration, spec quota.TreeSpec) bool {
	for i, r := range spec.Resources {
		if !resourcePattern.MatchString(r.Name) || r.Unit < quota.Count || r.Unit > quota.Items ||
			(r.Unit == quota.Items) != (r.Items != nil) || i > 0 && spec.Resources[i-1].Name >= r.Name {
			return false
		}
	}
	for i, n := range spec.Nodes {
		if !o.goodNode(next, spec, n) || (n.Path == "") != (i == 0) || quotatest.FindNode(spec, n.Path) != &spec.Nodes[i] {
			return false
		}
	}
	return namePattern.MatchString(spec.Name) && (spec.Forest == "" || namePattern.MatchString(spec.Forest)) &&
		len(spec.Resources) > 0 && len(spec.Resources) <= o.bounds.Resources &&
		len(spec.Nodes) > 0 && len(spec.Nodes) <= o.bounds.NodesPerTree
}

func (o *oracle) goodNode(next configuration, spec quota.TreeSpec, n quota.NodeSpec) bool {
	for _, list := range [][]quota.ResourceLimit{n.Limits, n.Defaults} {
		for i, l := range list {
			if !registers(spec, l.Resource) || !goodLimit(l.Limit) || l.Limit.Kind == quota.Unset || i > 0 &&
				list[i-1].Resource >= l.Resource {
				return false
			}
		}
	}
	return o.goodPath(n.Path) && o.goodLabels(n.Labels) &&
		(n.Policy == "" || next.policy(n.Policy) != quota.PolicySpec{}) &&
		quotatest.FindNode(spec, quotatest.Above(n.Path)) != nil &&
		(!n.Hard || next.rulesAt(spec, n.Path).Borrowing == "soft")
}

func goodLimit(l quota.Limit) bool {
	if l.Kind == quota.Limited || l.Kind == quota.Advisory {
		return l.Amount >= 0 && l.Amount <= quota.MaxAmount
	}
	return l.Kind <= quota.Unlimited && l.Amount == 0
}

func (o *oracle) goodPath(path string) bool {
	names := strings.Split(path, "/")
	return path == "" || len(path) <= quota.MaxPath && len(names) <= o.bounds.Depth &&
		!slices.ContainsFunc(names, func(name string) bool {
			return !namePattern.MatchString(name)
		})
}

func (o *oracle) goodLabels(labels []quota.Label) bool {
	for i, l := range labels {
		if l.Key == "" || len(l.Key) > quota.MaxLabelKey || len(l.Value) > quota.MaxLabelValue || i > 0 &&
			labels[i-1].Key >= l.Key {
			return false
		}
	}
	return len(labels) <= o.bounds.Labels
}
