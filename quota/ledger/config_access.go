package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// accessPlan is the wanted access section. change is nil if the section stays as it is.
type accessPlan struct {
	change *access.Change
	// roles are those after the change.
	roles   access.Roles
	changes []quota.Change
}

// keepAccess leaves the access section as it is.
func (p planner) keepAccess() accessPlan { return accessPlan{roles: p.ledger.book.Roles()} }

// planAccess checks a new access section; nil leaves it as it is.
func (p planner) planAccess(section *access.Section) (accessPlan, *quota.Error) {
	if section == nil {
		return p.keepAccess(), nil
	}
	moment := accessMoment(&p.ledger.rights, &p.ledger.forest)
	change, err := p.ledger.book.Apply(access.ReplaceSection{Section: *section}, moment)
	if err != nil {
		return accessPlan{}, accessRefusal(err)
	}
	return accessPlan{
		change: &change, roles: change.After.Roles(), changes: accessChanges(change.Differences),
	}, nil
}

// accessChanges are differences of the book as changes, which have no place.
func accessChanges(differences []access.Difference) []quota.Change {
	d := differ{}
	for _, difference := range differences {
		field := "access " + difference.Object
		if difference.Object != "binding" && difference.Name != "" { // a binding has no name
			field += " " + difference.Name
		}
		d.add("", field, difference.Before, difference.After)
	}
	return d.changes
}

// undo is the section before the change; nil if it stays.
func (p accessPlan) undo() *access.Section {
	if len(p.changes) == 0 {
		return nil
	}
	before := p.change.Before.Section()
	return &before
}

// checkBindings checks the bindings of a specification with the roles of the change, and compiles them in its draft.
func (p accessPlan) checkBindings(draft *tree, field string, specs []quota.NodeSpec) *quota.Error {
	for i, spec := range specs {
		if len(spec.Bindings) == 0 {
			continue
		}
		err := access.CheckBindings(spec.Bindings, p.roles, access.NodeScope)
		switch {
		case err != nil:
			refused := accessRefusal(err)
			refused.Field = nodeField(field, i) + "." + refused.Field
			return refused
		case !slices.IsSortedFunc(spec.Bindings, access.Binding.Compare):
			return quota.Errorf(quota.Invalid, nodeField(field, i)+".bindings", "the bindings are not in canonical order")
		}
		n := draft.byPath[spec.Path]
		n.bindings = access.Compile(spec.Bindings, p.roles, access.NodeScope)
	}
	return nil
}

// checkOthers checks the bindings of trees that a change does not name, if it changes roles: a role that loses verbs
// may no longer go with the terms of its bindings.
func (p planner) checkOthers(section accessPlan, named map[string]bool) *quota.Error {
	if section.change == nil || !section.change.ChangesRoles() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.ledger.forest.trees)) {
		if named[name] {
			continue
		}
		var refused *quota.Error
		p.ledger.forest.trees[name].root.walk(func(n *node) bool {
			if err := access.CheckBindings(n.spec.Bindings, section.roles, access.NodeScope); err != nil {
				refused = accessRefusal(err)
				refused.Field, refused.Text = "access.roles", n.place()+": "+refused.Text
			}
			return refused == nil
		})
		if refused != nil {
			return refused
		}
	}
	return nil
}

// givenBy lists the bindings that a change of one tree adds.
func (s *treeTransition) givenBy(roles access.Roles) []givenRights {
	if s.draft == nil {
		return nil
	}
	var list []givenRights
	s.draft.root.walk(func(n *node) bool {
		var before []access.Binding
		if n.from != nil {
			before = n.from.spec.Bindings
		}
		if added := access.AddedBindings(before, n.spec.Bindings); len(added) > 0 {
			list = append(list, givenRights{tree: s.draft.name, path: n.path, at: s.locateNode(n), added: added, roles: roles})
		}
		return true
	})
	return list
}

// locate finds where a difference stands before the change.
func (s *treeTransition) locate(c quota.Change) changedNode {
	if s.old == nil || s.draft == nil {
		return changedNode{isRoot: c.Node == "", isNewTree: true}
	}
	if c.Kind == quota.Removed && c.Field == "node" {
		n := s.old.byPath[c.Node]
		return changedNode{was: n, above: n.parent, isRoot: n.parent == nil}
	}
	return s.locateNode(s.draft.byPath[c.Node])
}

// locateNode finds a node of the draft before the change.
func (s *treeTransition) locateNode(n *node) changedNode {
	at := changedNode{was: n.from, isRoot: n.parent == nil, isNewTree: s.old == nil}
	for up := n.parent; up != nil && at.above == nil; up = up.parent {
		at.above = up.from
	}
	return at
}

// countDraftBindings counts the bindings of a tree that may be nil.
func countDraftBindings(t *tree) int {
	count := 0
	if t != nil {
		t.root.walk(func(n *node) bool {
			count += len(n.spec.Bindings)
			return true
		})
	}
	return count
}

// checkBindingRoom bounds the bindings of all nodes and of the cluster together.
func (p planner) checkBindingRoom(ofNodes int, section accessPlan) *quota.Error {
	book := p.ledger.book
	if section.change != nil {
		book = section.change.After
	}
	all := ofNodes + len(book.Section().Bindings)
	if all > access.MaxAllBindings && ofNodes > p.ledger.forest.countBindings() {
		return quota.Errorf(quota.Full, "trees", "there would be %d bindings; at most %d are allowed: bind groups instead",
			all, access.MaxAllBindings)
	}
	return nil
}

// bindings lists the differences of two lists of bindings, role by role.
func (d *differ) bindings(path string, before, after []access.Binding) {
	was, is := bindingTexts(before), bindingTexts(after)
	roles := slices.Collect(maps.Keys(was))
	for role := range is {
		if _, both := was[role]; !both {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		d.add(path, "binding "+role, was[role], is[role])
	}
}

// bindingTexts are the texts of bindings by their roles.
func bindingTexts(list []access.Binding) map[string]string {
	texts := map[string]string{}
	for _, b := range list {
		if before := texts[b.Role]; before != "" {
			texts[b.Role] = before + "; "
		}
		texts[b.Role] += bindingText(b)
	}
	return texts
}

// bindingText says to whom a binding gives its role, and on which terms.
func bindingText(b access.Binding) string {
	names := make([]string, len(b.To))
	for i, s := range b.To {
		names[i] = s.String()
	}
	text := strings.Join(names, ", ")
	if b.MaxPriority != 0 {
		text += " max-priority " + strconv.FormatInt(b.MaxPriority, 10)
	}
	if b.Unpreemptable {
		text += " unpreemptable"
	}
	if holders := b.HoldAs.String(); holders != "" {
		text += " hold-as " + holders
	}
	if b.IDs != "" {
		text += " ids " + b.IDs
	}
	if b.Until != 0 {
		text += " until " + strconv.FormatInt(b.Until, 10)
	}
	return text
}

// useBook makes the book of a change the present one.
func (p planner) useBook(c access.Change) {
	p.ledger.book, p.ledger.forest.configured = c.After, p.ledger.index
	if c.ChangesRoles() {
		p.ledger.forest.walkBindings(func(n *node, list []access.Binding) {
			n.bindings = access.Compile(list, p.ledger.book.Roles(), access.NodeScope)
		})
	}
	p.reserveIDs()
}

// reserveIDs collects the reserved prefixes of all bindings.
func (p planner) reserveIDs() {
	p.ledger.reserved = access.ReservedIDs{}
	p.ledger.reserved.Add(p.ledger.book.Section().Bindings)
	p.ledger.forest.walkBindings(func(_ *node, list []access.Binding) { p.ledger.reserved.Add(list) })
}

// accessMoment is what a command of the book needs to know of the ledger.
func accessMoment(r *callerRights, f *forest) access.Moment {
	return access.Moment{
		Wall: r.now.Wall, Index: r.env.index, NodeBindings: f.countBindings(), BindsRole: f.bindsRole,
		KeepsLife: r.env.book.Mode() == access.Guarded && !r.may(access.AccessManage, nil),
	}
}

// countBindings counts the bindings of all nodes.
func (f *forest) countBindings() int {
	count := 0
	f.walkBindings(func(_ *node, list []access.Binding) { count += len(list) })
	return count
}

// bindsRole is true if a binding of a node has a role.
func (f *forest) bindsRole(role string) bool {
	found := false
	f.walkBindings(func(_ *node, list []access.Binding) {
		found = found || slices.ContainsFunc(list, func(b access.Binding) bool { return b.Role == role })
	})
	return found
}

// walkBindings visits all nodes with bindings, in no order.
func (f *forest) walkBindings(visit func(*node, []access.Binding)) {
	for _, t := range f.trees {
		t.root.walk(func(n *node) bool {
			if len(n.spec.Bindings) > 0 {
				visit(n, n.spec.Bindings)
			}
			return true
		})
	}
}

// accessRefusal is a refusal of package access as one of the ledger.
func accessRefusal(err *access.Error) *quota.Error {
	kinds := map[access.ErrorKind]quota.Kind{
		access.Invalid: quota.Invalid, access.NotFound: quota.NotFound, access.AlreadyExists: quota.IDTaken,
		access.InUse: quota.InUse, access.Full: quota.Full, access.Conflict: quota.InUse,
		access.LastAdministrator: quota.InUse, access.Unauthenticated: quota.Unauthenticated,
	}
	text := err.Text
	if err.Allowed != "" {
		text += "; " + err.Allowed
	}
	return quota.Errorf(kinds[err.Kind], err.Field, "%s", text)
}
