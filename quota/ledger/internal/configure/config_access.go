package configure

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// accessPlan has no change if the section stays as it is.
type accessPlan struct {
	change *access.Change
	// roles are those after the change.
	roles   access.Roles
	changes []quota.Change
}

func (p Planner) keepAccess() accessPlan { return accessPlan{roles: p.State.Book.Roles()} }

func (p Planner) planAccess(section *access.Section) (accessPlan, *quota.Error) {
	if section == nil {
		return p.keepAccess(), nil
	}
	moment := AccessMoment(&p.State.Rights, &p.State.Forest)
	change, err := p.State.Book.Apply(access.ReplaceSection{Section: *section}, moment)
	if err != nil {
		return accessPlan{}, AccessRefusal(err)
	}
	return accessPlan{
		change: &change, roles: change.After.Roles(), changes: AccessChanges(change.Differences),
	}, nil
}

// AccessChanges are differences of the book as changes, which have no place.
func AccessChanges(differences []access.Difference) []quota.Change {
	d := Differ{}
	for _, difference := range differences {
		field := "access " + difference.Object
		if difference.Object != "binding" && difference.Name != "" { // a binding has no name
			field += " " + difference.Name
		}
		d.add("", field, difference.Before, difference.After)
	}
	return d.Changes
}

func (p accessPlan) undo() *access.Section {
	if len(p.changes) == 0 {
		return nil
	}
	before := p.change.Before.Section()
	return &before
}

// checkBindings checks the bindings of a specification with the roles of the change, and compiles them in its draft.
func (p accessPlan) checkBindings(draft *state.Tree, field string, specs []quota.NodeSpec) *quota.Error {
	for i, spec := range specs {
		if len(spec.Bindings) == 0 {
			continue
		}
		err := access.CheckBindings(spec.Bindings, p.roles, access.NodeScope)
		switch {
		case err != nil:
			refused := AccessRefusal(err)
			refused.Field = NodeField(field, i) + "." + refused.Field
			return refused
		case !slices.IsSortedFunc(spec.Bindings, access.Binding.Compare):
			return quota.Errorf(quota.Invalid, NodeField(field, i)+".bindings", "the bindings are not in canonical order")
		}
		n := draft.ByPath[spec.Path]
		n.Bindings = access.Compile(spec.Bindings, p.roles, access.NodeScope)
	}
	return nil
}

// checkOthers is needed if a change has roles: one that loses verbs may no longer go with the terms of its bindings.
func (p Planner) checkOthers(section accessPlan, named map[string]bool) *quota.Error {
	if section.change == nil || !section.change.ChangesRoles() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.State.Forest.Trees)) {
		if named[name] {
			continue
		}
		var refused *quota.Error
		p.State.Forest.Trees[name].Root.Walk(func(n *state.Node) bool {
			if err := access.CheckBindings(n.Spec.Bindings, section.roles, access.NodeScope); err != nil {
				refused = AccessRefusal(err)
				refused.Field, refused.Text = "access.roles", n.Place()+": "+refused.Text
			}
			return refused == nil
		})
		if refused != nil {
			return refused
		}
	}
	return nil
}

func (s *treeTransition) givenBy(roles access.Roles) []GivenRights {
	if s.draft == nil {
		return nil
	}
	var list []GivenRights
	s.draft.Root.Walk(func(n *state.Node) bool {
		var before []access.Binding
		if n.From != nil {
			before = n.From.Spec.Bindings
		}
		if added := access.AddedBindings(before, n.Spec.Bindings); len(added) > 0 {
			list = append(list, GivenRights{Tree: s.draft.Name, Path: n.Path, At: s.locateNode(n), Added: added, Roles: roles})
		}
		return true
	})
	return list
}

func (s *treeTransition) locate(c quota.Change) ChangedNode {
	if s.old == nil || s.draft == nil {
		return ChangedNode{IsRoot: c.Node == "", IsNewTree: true}
	}
	if c.Kind == quota.Removed && c.Field == "node" {
		n := s.old.ByPath[c.Node]
		return ChangedNode{Was: n, Above: n.Parent, IsRoot: n.Parent == nil}
	}
	return s.locateNode(s.draft.ByPath[c.Node])
}

func (s *treeTransition) locateNode(n *state.Node) ChangedNode {
	at := ChangedNode{Was: n.From, IsRoot: n.Parent == nil, IsNewTree: s.old == nil}
	for up := n.Parent; up != nil && at.Above == nil; up = up.Parent {
		at.Above = up.From
	}
	return at
}

// countDraftBindings takes nil for a tree that is not there.
func countDraftBindings(t *state.Tree) int {
	count := 0
	if t != nil {
		t.Root.Walk(func(n *state.Node) bool {
			count += len(n.Spec.Bindings)
			return true
		})
	}
	return count
}

// checkBindingRoom bounds the bindings of all nodes and of the cluster together.
func (p Planner) checkBindingRoom(ofNodes int, section accessPlan) *quota.Error {
	book := p.State.Book
	if section.change != nil {
		book = section.change.After
	}
	all := ofNodes + len(book.Section().Bindings)
	if all > access.MaxAllBindings && ofNodes > countBindings(&p.State.Forest) {
		return quota.Errorf(quota.Full, "trees", "there would be %d bindings; at most %d are allowed: bind groups instead",
			all, access.MaxAllBindings)
	}
	return nil
}

func (d *Differ) bindings(path string, before, after []access.Binding) {
	previous, updated := bindingTexts(before), bindingTexts(after)
	roles := slices.Collect(maps.Keys(previous))
	for role := range updated {
		if _, both := previous[role]; !both {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		d.add(path, "binding "+role, previous[role], updated[role])
	}
}

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
	if b.Until != 0 {
		text += " until " + strconv.FormatInt(b.Until, 10)
	}
	return text
}

// UseBook makes the book of a change the present one.
func (p Planner) UseBook(c access.Change) {
	p.State.Book, p.State.Forest.Configured = c.After, p.State.Index
	if c.ChangesRoles() {
		walkBindings(&p.State.Forest, func(n *state.Node, list []access.Binding) {
			n.Bindings = access.Compile(list, p.State.Book.Roles(), access.NodeScope)
		})
	}
}

// AccessMoment is what a command of the book needs to know of the ledger.
func AccessMoment(r *state.CallerRights, f *state.Forest) access.Moment {
	return access.Moment{
		Wall: r.Now.Wall, Index: r.Env.Index, NodeBindings: countBindings(f),
		BindsRole: func(role string) bool { return bindsRole(f, role) },
		KeepsLife: r.Env.Book.Mode() == access.Guarded && !r.May(access.AccessManage, nil),
	}
}

func countBindings(f *state.Forest) int {
	count := 0
	walkBindings(f, func(_ *state.Node, list []access.Binding) { count += len(list) })
	return count
}

func bindsRole(f *state.Forest, role string) bool {
	found := false
	walkBindings(f, func(_ *state.Node, list []access.Binding) {
		found = found || slices.ContainsFunc(list, func(b access.Binding) bool { return b.Role == role })
	})
	return found
}

// walkBindings visits in no order.
func walkBindings(f *state.Forest, visit func(*state.Node, []access.Binding)) {
	for _, t := range f.Trees {
		t.Root.Walk(func(n *state.Node) bool {
			if len(n.Spec.Bindings) > 0 {
				visit(n, n.Spec.Bindings)
			}
			return true
		})
	}
}

// AccessRefusal is a refusal of package access as one of the ledger.
func AccessRefusal(err *access.Error) *quota.Error {
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
