package oracle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// fact is one thing that a configuration says.
type fact struct{ tree, node, field string }

// removedMark precedes the path of a node that no longer exists.
const removedMark = "\x00"

// changesOf compares two configurations as flat lists of facts. What is said about a node is compared under its new
// path.
func changesOf(before, after configuration) []quota.Change {
	was := facts(before, func(tree, path string) string {
		if to, exists := after.pathOf(tree, before.ids[tree][path]); exists {
			return to
		}
		return removedMark + path
	})
	is := facts(after, func(_, path string) string { return path })
	list := append(pathsChanged(before, after), policyChanges(before, after)...)
	for key, text := range is {
		switch old, known := was[key]; {
		case !known:
			list = append(list,
				quota.Change{Kind: quota.Added, Tree: key.tree, Node: key.node, Field: key.field, After: text})
		case old != text:
			// a resource that stays can only change its unit
			field := strings.Replace(key.field, "resource ", "unit ", 1)
			list = append(list,
				quota.Change{
					Kind: quota.Changed, Tree: key.tree, Node: key.node, Field: field,
					Before: old, After: text,
				})
		}
	}
	for key, text := range was {
		if _, still := is[key]; !still && !removedWithMore(key, is) {
			at := strings.TrimPrefix(key.node, removedMark)
			list = append(list,
				quota.Change{Kind: quota.Removed, Tree: key.tree, Node: at, Field: key.field, Before: text})
		}
	}
	return withoutItemTexts(list)
}

// removedWithMore is true if something more is removed, so that this fact is not listed: with a tree or a node goes all
// that is said about it, with a resource its items.
func removedWithMore(key fact, is map[fact]string) bool {
	if key.field == "tree" {
		return false
	}
	_, tree := is[fact{key.tree, "", "tree"}]
	_, node := is[fact{key.tree, key.node, "node"}]
	if resource, ofItems := strings.CutPrefix(key.field, "items "); ofItems &&
		is[fact{key.tree, "", "resource " + resource}] == "" {
		return true
	}
	return !tree || key.field != "node" && key.node != "" && !node
}

// withoutItemTexts blanks how items, principals and the leases of a tree are described in words.
func withoutItemTexts(changes []quota.Change) []quota.Change {
	list := append([]quota.Change(nil), changes...)
	for i := range list {
		if f := list[i].Field; strings.HasPrefix(f, "items ") || strings.HasPrefix(f, "lease ") || f == "principals" {
			list[i].Before, list[i].After = "", ""
		}
	}
	return list
}

// pathsChanged lists the nodes that have other paths, but not those that have only come along with their parents.
func pathsChanged(before, after configuration) []quota.Change {
	var list []quota.Change
	for tree, ids := range after.ids {
		for path, id := range ids {
			was, exists := before.pathOf(tree, id)
			if !exists || was == path {
				continue
			}
			if before.ids[tree][quotatest.Above(was)] != ids[quotatest.Above(path)] || lastName(was) != lastName(path) {
				list = append(list,
					quota.Change{
						Kind: quota.Changed, Tree: tree, Node: path, Field: "path",
						Before: was, After: path,
					})
			}
		}
	}
	return list
}

func lastName(path string) string {
	names := strings.Split(path, "/")
	return names[len(names)-1]
}

// facts lists all that a configuration says; nodes are called what name returns.
func facts(c configuration, name func(tree, path string) string) map[fact]string {
	all := map[fact]string{}
	add := func(tree, node, field, text string) {
		if text != "" {
			all[fact{tree, node, field}] = text
		}
	}
	on := map[bool]string{true: "on"}
	for tree, spec := range c.trees {
		add(tree, "", "tree", tree)
		add(tree, "", "forest", spec.Forest)
		add(tree, "", "require_reason", on[spec.RequireReason])
		add(tree, "", "require_principal", on[spec.RequirePrincipal])
		if spec.Approvals > 0 {
			add(tree, "", "approvals", strconv.Itoa(spec.Approvals))
		}
		add(tree, "", "tenants_see", []string{"", "names", "nothing"}[spec.TenantsSee])
		add(tree, "", "lease default", spanText(spec.Leases.Default))
		add(tree, "", "lease max", spanText(spec.Leases.Max))
		add(tree, "", "overtake", spanText(spec.Overtake))
		for _, r := range spec.Resources {
			add(tree, "", "resource "+r.Name, r.Unit.String())
			if r.Items != nil {
				add(tree, "", "items "+r.Name, fmt.Sprintf("%+v", *r.Items))
			}
		}
		for _, n := range spec.Nodes {
			at := name(tree, n.Path)
			if n.Path != "" {
				add(tree, at, "node", strings.TrimPrefix(at, removedMark))
				add(tree, at, "policy", n.Policy)
			} else {
				add(tree, at, "policy", cmp.Or(n.Policy, "open"))
			}
			add(tree, at, "hard", on[n.Hard])
			add(tree, at, "queueing", []string{"", "strict", "best-effort"}[n.Queueing])
			for _, l := range n.Limits {
				add(tree, at, "limit "+l.Resource, l.Limit.String())
			}
			for _, l := range n.Defaults {
				add(tree, at, "default "+l.Resource, l.Limit.String())
			}
			for _, l := range n.Borrow {
				add(tree, at, "borrow "+l.Resource, l.Limit.String())
			}
			for _, l := range n.Lend {
				add(tree, at, "lend "+l.Resource, l.Limit.String())
			}
			if n.Applications.Kind == quota.Limited {
				add(tree, at, "applications", strconv.Itoa(int(n.Applications.Amount)))
			}
			if len(n.Principals) > 0 {
				add(tree, at, "principals", fmt.Sprintf("%+v", n.Principals))
			}
			for _, l := range n.Labels {
				add(tree, at, "label "+l.Key, fmt.Sprintf(`"%s"`, l.Value))
			}
			if rule := n.AutoApprove; rule.AtMost > 0 { // which always has the shortest span here
				within := map[bool]string{true: " within headroom"}[rule.WithinHeadroom]
				add(tree, at, "auto_approve", fmt.Sprintf("at most %d%% every 1h%s", rule.AtMost, within))
			}
		}
	}
	return all
}

// spanText is empty for none.
func spanText(s quota.Span) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%dms", s)
}
