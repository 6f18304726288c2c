package quota

import "cmp"

// differ collects changes of one tree.
type differ struct {
	tree    string
	changes []Change
}

// diff lists every difference between two trees of one name; either may be nil.
func diff(before, after *tree) []Change {
	switch {
	case before == nil && after == nil:
		return nil
	case after == nil:
		return []Change{{Kind: Removed, Tree: before.name, Field: "tree", Before: before.name}}
	}
	d := differ{tree: after.name}
	if before == nil {
		before = &tree{name: after.name}
		d.add("", "tree", "", after.name)
	}
	d.resources(before, after)
	after.root.walk(func(n *node) bool {
		d.node(before.byPath[n.path], n)
		return true
	})
	if before.root != nil {
		before.root.walk(func(n *node) bool {
			if after.byPath[n.path] == nil {
				d.add(n.path, "node", n.path, "")
			}
			return true
		})
	}
	return d.changes
}

// add notes a difference of two texts; an empty text means absent.
func (d *differ) add(path, field, before, after string) {
	kind := Changed
	switch {
	case before == after:
		return
	case before == "":
		kind = Added
	case after == "":
		kind = Removed
	}
	d.changes = append(d.changes, Change{Kind: kind, Tree: d.tree, Node: path, Field: field, Before: before, After: after})
}

func (d *differ) resources(before, after *tree) {
	for _, r := range after.resources {
		was := before.resource(r.Name)
		if was == nil {
			d.add("", "resource "+r.Name, "", r.Unit.String())
			continue
		}
		d.add("", "unit "+r.Name, was.Unit.String(), r.Unit.String())
	}
	for _, r := range before.resources {
		if after.resource(r.Name) == nil {
			d.add("", "resource "+r.Name, r.Unit.String(), "")
		}
	}
}

func (d *differ) node(before, after *node) {
	was := &NodeSpec{}
	if before != nil {
		was = before.spec
	} else if after.path != "" {
		d.add(after.path, "node", "", after.path)
	}
	d.add(after.path, "policy", policyText(was, before != nil), policyText(after.spec, true))
	d.limits(after.path, was.Limits, after.spec.Limits)
	d.labels(after.path, was.Labels, after.spec.Labels)
	d.bounds(after.path, "borrow ", was.Borrow, after.spec.Borrow)
	d.bounds(after.path, "lend ", was.Lend, after.spec.Lend)
	d.add(after.path, "hard", hardText(was.Hard), hardText(after.spec.Hard))
	d.principals(after.path, was, after.spec)
}

// policyText is the policy as configured; a new node that inherits is no change.
func policyText(s *NodeSpec, there bool) string {
	if there && s.Policy == "" && s.Path == "" {
		return DefaultPolicy
	}
	return s.Policy
}

func (d *differ) limits(path string, before, after []ResourceLimit) {
	merge(before, after, func(l ResourceLimit) string { return l.Resource }, func(name string, was, is *ResourceLimit) {
		d.add(path, "limit "+name, limitText(was), limitText(is))
	})
}

func (d *differ) bounds(path, field string, before, after []ResourceLimit) {
	merge(before, after, func(l ResourceLimit) string { return l.Resource }, func(name string, was, is *ResourceLimit) {
		d.add(path, field+name, limitText(was), limitText(is))
	})
}

func hardText(hard bool) string {
	if hard {
		return "hard"
	}
	return ""
}

func limitText(l *ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.String()
}

func (d *differ) labels(path string, before, after []Label) {
	merge(before, after, func(l Label) string { return l.Key }, func(key string, was, is *Label) {
		d.add(path, "label "+key, labelText(was), labelText(is))
	})
}

// labelText quotes the value, so that an empty one is not taken for absent.
func labelText(l *Label) string {
	if l == nil {
		return ""
	}
	return `"` + l.Value + `"`
}

// merge walks two lists that are sorted by key side by side.
func merge[T any](before, after []T, key func(T) string, visit func(key string, was, is *T)) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		var order int
		switch {
		case i == len(before):
			order = 1
		case j == len(after):
			order = -1
		default:
			order = cmp.Compare(key(before[i]), key(after[j]))
		}
		var was, is *T
		if order <= 0 {
			was = &before[i]
			i++
		}
		if order >= 0 {
			is = &after[j]
			j++
		}
		if was != nil {
			visit(key(*was), was, is)
		} else {
			visit(key(*is), was, is)
		}
	}
}
