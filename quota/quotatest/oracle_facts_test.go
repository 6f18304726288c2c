package quotatest_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
)

// gone marks the place of a node that is no longer there.
const gone = "\x00"

// changesOf compares two configurations as flat lists of facts. What is said about a node is compared under its new
// path.
func changesOf(before, after configuration) []quota.Change {
	was := facts(before, func(tree, path string) string {
		if to, there := after.pathOf(tree, before.ids[tree][path]); there {
			return to
		}
		return gone + path
	})
	is := facts(after, func(_, path string) string { return path })
	list := pathsChanged(before, after)
	for key, text := range is {
		switch old, known := was[key]; {
		case !known:
			list = append(list, quota.Change{Kind: quota.Added, Tree: key.tree, Node: key.node, Field: key.field, After: text})
		case old != text:
			field := strings.Replace(key.field, "resource ", "unit ", 1) // a resource that stays can only change its unit
			list = append(list, quota.Change{Kind: quota.Changed, Tree: key.tree, Node: key.node, Field: field, Before: old, After: text})
		}
	}
	for key, text := range was {
		// With a tree or a node goes all that is said about it.
		_, still := is[key]
		_, tree := is[fact{key.tree, "", "tree"}]
		_, node := is[fact{key.tree, key.node, "node"}]
		if !still && (key.field == "tree" || tree && (key.field == "node" || key.node == "" || node)) {
			at := strings.TrimPrefix(key.node, gone)
			list = append(list, quota.Change{Kind: quota.Removed, Tree: key.tree, Node: at, Field: key.field, Before: text})
		}
	}
	return list
}

// pathsChanged lists the nodes that stand elsewhere, but not those that have only come along with their parents.
func pathsChanged(before, after configuration) []quota.Change {
	var list []quota.Change
	for tree, ids := range after.ids {
		for path, id := range ids {
			was, there := before.pathOf(tree, id)
			if !there || was == path {
				continue
			}
			if before.ids[tree][above(was)] != ids[above(path)] || lastOf(was) != lastOf(path) {
				list = append(list, quota.Change{Kind: quota.Changed, Tree: tree, Node: path, Field: "path", Before: was, After: path})
			}
		}
	}
	return list
}

func lastOf(path string) string {
	names := strings.Split(path, "/")
	return names[len(names)-1]
}

// fact is one thing that a configuration says.
type fact struct{ tree, node, field string }

func facts(c configuration, name func(tree, path string) string) map[fact]string {
	all := map[fact]string{}
	say := func(tree, node, field, text string) {
		if text != "" {
			all[fact{tree, node, field}] = text
		}
	}
	on := map[bool]string{true: "on"}
	for tree, spec := range c.trees {
		say(tree, "", "tree", tree)
		say(tree, "", "forest", spec.Forest)
		say(tree, "", "require_reason", on[spec.RequireReason])
		say(tree, "", "maintenance", on[spec.Maintenance])
		for _, r := range spec.Resources {
			say(tree, "", "resource "+r.Name, r.Unit.String())
		}
		for _, n := range spec.Nodes {
			at := name(tree, n.Path)
			if n.Path != "" {
				say(tree, at, "node", strings.TrimPrefix(at, gone))
				say(tree, at, "policy", n.Policy)
			} else {
				say(tree, at, "policy", cmp.Or(n.Policy, "open"))
			}
			for _, l := range n.Limits {
				say(tree, at, "limit "+l.Resource, l.Limit.String())
			}
			for _, l := range n.Defaults {
				say(tree, at, "default "+l.Resource, l.Limit.String())
			}
			for _, l := range n.Labels {
				say(tree, at, "label "+l.Key, fmt.Sprintf(`"%s"`, l.Value))
			}
			say(tree, at, "admins", strings.Join(n.Admins, " "))
		}
	}
	return all
}
