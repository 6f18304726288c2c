package quotatest

import (
	"cmp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

func applyTrees(t *rapid.T) quota.ApplyTrees {
	c := quota.ApplyTrees{Meta: meta(t)}
	for _, name := range subset(t, TreeNames, 2, !oneIn(t, 40, "no trees"), "trees") {
		spec := treeSpec(t, name)
		if oneIn(t, 15, "spoil") {
			spoilTree(t, &spec)
		}
		c.Trees = append(c.Trees, spec)
	}
	if oneIn(t, 40, "twice") && len(c.Trees) > 0 {
		c.Trees = append(c.Trees, c.Trees[0])
	}
	return c
}

func treeSpec(t *rapid.T, name string) quota.TreeSpec {
	spec := quota.TreeSpec{Name: name}
	for _, r := range resourceNames(t) {
		unit := quota.Count
		if oneIn(t, 10, "other unit") {
			unit = quota.Bytes
		}
		spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: unit})
	}
	policy := pick(t, []string{"", "open", "strict", "borrowing", "borrowing"}, "root policy")
	for _, p := range nodePaths(t) {
		spec.Nodes = append(spec.Nodes, nodeSpec(t, p, spec.Resources, policy == "borrowing"))
	}
	spec.Nodes[0].Policy = policy
	soften(spec.Nodes)
	return spec
}

// soften leaves no node hard whose policy has no soft ones. Parents come before their children.
func soften(nodes []quota.NodeSpec) {
	policies := map[string]string{}
	for i := range nodes {
		n := &nodes[i]
		above := n.Path[:max(0, strings.LastIndexByte(n.Path, '/'))]
		policies[n.Path] = cmp.Or(n.Policy, policies[above])
		n.Hard = n.Hard && policies[n.Path] == "borrowing"
	}
}

// resourceNames are mostly all of them, so that claims find them.
func resourceNames(t *rapid.T) []string {
	if oneIn(t, 6, "fewer resources") {
		return subset(t, resources, 2, true, "resources")
	}
	return resources
}

// nodePaths are the root and some paths with all that is above them; the order of the others is free, but for parents.
func nodePaths(t *rapid.T) []string {
	list := []string{""}
	for _, p := range subset(t, paths, 3, false, "nodes") {
		for at := range strings.SplitSeq(p, "/") {
			whole := p[:strings.Index(p, at)+len(at)]
			if !slices.Contains(list, whole) {
				list = append(list, whole)
			}
		}
	}
	return list
}

// nodeSpec limits mostly everything where borrowing makes zero of no limit.
func nodeSpec(t *rapid.T, path string, registered []quota.Resource, borrowing bool) quota.NodeSpec {
	n := quota.NodeSpec{Path: path, Labels: labels(t)}
	if oneIn(t, 10, "other policy") {
		n.Policy = pick(t, []string{"open", "strict", "borrowing"}, "policy")
	}
	n.Hard = borrowing && oneIn(t, 5, "hard")
	for _, r := range registered {
		if Die(t, 2, "limited") == 0 || borrowing {
			n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: limit(t, path)})
		}
	}
	return n
}

// limit tends to be larger at the top, so that strict trees come about.
func limit(t *rapid.T, path string) quota.Limit {
	depth := strings.Count(path, "/")
	if path != "" {
		depth++
	}
	room := []quota.Amount{40, 10, 3, 1}[min(depth, 3)]
	n := Die(t, 22, "limit")
	switch {
	case n < 17:
		return quota.AtMost(room + quota.Amount(n%3))
	case n < 18:
		return quota.NoLimit()
	case n < 19:
		return quota.AtMost(0)
	case n < 20:
		return quota.AtMost(amount(t))
	}
	return quota.AdvisoryLimit(room * quota.Amount(n-20))
}

func spoilTree(t *rapid.T, spec *quota.TreeSpec) {
	last := &spec.Nodes[len(spec.Nodes)-1]
	switch Die(t, 15, "how") {
	case 0:
		spec.Name = pick(t, []string{"", "a/b", "-", strings.Repeat("n", 64)}, "bad name")
	case 1:
		spec.Resources = nil
	case 2:
		spec.Resources = append(spec.Resources, spec.Resources[0])
	case 3:
		spec.Resources[0].Unit = 4
	case 4:
		spec.Resources[0].Name = pick(t, []string{"", "a b", "/r", strings.Repeat("r", 64)}, "bad resource")
	case 5:
		spec.Nodes = nil
	case 6:
		spec.Nodes = append(spec.Nodes, *last)
	case 7:
		spec.Nodes = append(
			spec.Nodes, quota.NodeSpec{Path: pick(t, []string{"z/z", "a//x", "/", "b/", "a/x/p/q", "é"}, "bad path")})
	case 8:
		spec.Nodes[0].Path = "root"
	case 9:
		last.Policy = "lenient"
	case 10:
		last.Labels = badLabels(t)
	case 11:
		last.Limits = append(last.Limits, quota.ResourceLimit{Resource: "gpu", Limit: quota.AtMost(1)})
	case 12:
		last.Limits = []quota.ResourceLimit{badLimit(t)}
	case 13:
		last.Limits = []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(1)},
			{Resource: "cpu", Limit: quota.AtMost(1)},
		}
	case 14:
		slices.Reverse(spec.Resources)
	}
}

func badLimit(t *rapid.T) quota.ResourceLimit {
	return quota.ResourceLimit{Resource: "cpu", Limit: pick(t, []quota.Limit{
		{},
		{Kind: quota.Advisory + 1},
		{Kind: 255},
		quota.AdvisoryLimit(-1), quota.AdvisoryLimit(quota.MaxAmount + 1),
		quota.AtMost(-1), quota.AtMost(quota.MaxAmount + 1),
		{Kind: quota.Unlimited, Amount: 1},
		{Amount: 1},
	}, "bad limit")}
}

func setLimits(t *rapid.T) quota.SetLimits {
	c := quota.SetLimits{Meta: meta(t), Tree: treeName(t), Node: path(t)}
	for _, r := range subset(t, resources, 1, !oneIn(t, 40, "no limits"), "limits of") {
		l := quota.ResourceLimit{Resource: r, Limit: limit(t, c.Node)}
		if oneIn(t, 6, "unset") {
			l.Limit = quota.Limit{}
		}
		c.Limits = append(c.Limits, l)
	}
	if oneIn(t, 15, "spoil") && len(c.Limits) > 0 {
		switch Die(t, 4, "how") {
		case 0:
			c.Limits[0].Resource = "gpu"
		case 1:
			c.Limits = append(c.Limits, c.Limits[0])
		case 2:
			slices.Reverse(c.Limits)
		case 3:
			c.Limits[0] = badLimit(t)
		}
	}
	return c
}
