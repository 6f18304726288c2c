package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// names lists all policies, for messages.
func (s *policySet) names() string {
	if len(s.defined) == 0 {
		return builtIn.Names()
	}
	all := maps.Clone(builtIn)
	maps.Copy(all, s.defined)
	return all.Names()
}

func (s *policySet) spec(name string) (quota.PolicySpec, bool) {
	i, found := slices.BinarySearchFunc(s.specs, name,
		func(spec quota.PolicySpec, name string) int { return strings.Compare(spec.Name, name) })
	if !found {
		return quota.PolicySpec{Name: name}, false
	}
	return s.specs[i], true
}

// with adds a definition, which must come after those that are there.
func (s *policySet) with(spec quota.PolicySpec, p *policy.Policy) {
	if s.defined == nil {
		s.defined = map[string]*policy.Policy{}
	}
	s.specs = append(s.specs, spec)
	s.defined[spec.Name] = p
}

// policyChange is the wanted definitions of policies, and how they differ from the present ones.
type policyChange struct {
	next    *policySet
	changes []quota.Change
	undo    []quota.PolicyUndo
	// redefined has the field of the command, by name, of definitions whose rules change.
	redefined map[string]string
	removed   []string
}

// keepPolicies is a change that leaves all definitions as they are.
func (f *forest) keepPolicies() policyChange { return policyChange{next: f.policies} }

// wantedPolicies are the definitions after an ApplyTrees, by name, with the field of each.
type wantedPolicies struct {
	specs  map[string]quota.PolicySpec
	fields map[string]string
}

// planPolicies checks the definitions of an ApplyTrees.
func (f *forest) planPolicies(c quota.ApplyTrees) (policyChange, *quota.Error) {
	prunes := c.Prune && len(f.policies.specs) > 0
	if len(c.Policies)+len(c.RemovePolicies) == 0 && !prunes {
		return f.keepPolicies(), nil
	}
	w := wantedPolicies{specs: map[string]quota.PolicySpec{}, fields: map[string]string{}}
	for _, spec := range f.policies.specs {
		if !c.Prune {
			w.specs[spec.Name] = spec
		}
	}
	if err := f.removePolicies(c.RemovePolicies, w); err != nil {
		return policyChange{}, err
	}
	for i, spec := range c.Policies {
		field := fmt.Sprintf("policies[%d]", i)
		switch {
		case i > 0 && c.Policies[i-1].Name >= spec.Name:
			return policyChange{}, quota.Errorf(quota.Invalid, field+".name",
				"policy %q is not in order, or defined twice", quota.Clip(spec.Name))
		case slices.Contains(c.RemovePolicies, spec.Name):
			return policyChange{}, quota.Errorf(quota.Invalid, field+".name",
				"policy %q is defined and removed in one change; do one of them", quota.Clip(spec.Name))
		}
		w.specs[spec.Name], w.fields[spec.Name] = spec, field
	}
	return f.comparePolicies(w)
}

func (f *forest) removePolicies(names []string, w wantedPolicies) *quota.Error {
	for i, name := range names {
		field := fmt.Sprintf("remove_policies[%d]", i)
		_, defined := f.policies.spec(name)
		switch {
		case i > 0 && names[i-1] >= name:
			return quota.Errorf(quota.Invalid, field, "policy %q is not in order, or removed twice", quota.Clip(name))
		case !defined && builtIn[name] != nil:
			return quota.Errorf(quota.Invalid, field, "policy %s is built in and cannot be removed", name)
		case !defined:
			return quota.Errorf(quota.NotFound, field, "no policy %q is defined", quota.Clip(name))
		}
		delete(w.specs, name)
		w.fields[name] = field
	}
	return nil
}

// comparePolicies makes the policies of wanted definitions and lists how they differ from the present ones.
func (f *forest) comparePolicies(w wantedPolicies) (policyChange, *quota.Error) {
	c := policyChange{next: &policySet{}, redefined: map[string]string{}}
	if n := len(w.specs); n > f.bounds.Policies {
		return c, quota.Errorf(quota.Full, "policies",
			"the configuration would define %d policies; at most %d are allowed: remove those that no tree uses", n,
			f.bounds.Policies)
	}
	names := slices.Concat(slices.Collect(maps.Keys(w.specs)), slices.Collect(maps.Keys(f.policies.defined)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := f.comparePolicy(&c, w, name); err != nil {
			return c, err
		}
	}
	return c, nil
}

// comparePolicy adds one definition to a change, or its removal.
func (f *forest) comparePolicy(c *policyChange, w wantedPolicies, name string) *quota.Error {
	was, defined := f.policies.spec(name)
	spec, wanted := w.specs[name]
	if !wanted {
		c.removed = append(c.removed, name)
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: was})
		c.add("policy "+name, policy.DescribeSpec(was), "")
		return nil
	}
	before := f.policies.defined[name]
	if defined && was == spec {
		c.next.with(spec, before)
		return nil
	}
	field := w.fields[name]
	is, problem := builtIn.Define(spec)
	switch {
	case problem != nil:
		return quota.Errorf(quota.Invalid, field+"."+strings.ReplaceAll(problem.Field, "-", "_"), "%s", problem.Text)
	case !defined && builtIn[name] != nil:
		return quota.Errorf(quota.Invalid, field+".name",
			"policy %s is built in and never changes; define a policy of another name", name)
	case !defined:
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: quota.PolicySpec{Name: name}, Added: true})
		c.add("policy "+name, "", policy.DescribeSpec(spec))
	default:
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: was})
		c.compareSwitches(was, spec, before, is)
		if is.SameRules(before) {
			is = before
		} else {
			c.redefined[name] = field
		}
	}
	c.next.with(spec, is)
	return nil
}

// compareSwitches lists the values that differ, also those that come from the base.
func (c *policyChange) compareSwitches(was, spec quota.PolicySpec, before, after *policy.Policy) {
	c.add("policy "+spec.Name+" base", was.Base, spec.Base)
	for _, s := range policy.Switches() {
		c.add("policy "+spec.Name+" "+s.Name, s.Value(before), s.Value(after))
	}
}

func (c *policyChange) add(field, before, after string) {
	d := differ{}
	d.add("", field, before, after)
	c.changes = append(c.changes, d.changes...)
}

// undoPolicies are the definitions at the end of a walk back through the history.
func (f *forest) undoPolicies(undone []quota.PolicyUndo) (policyChange, *quota.Error) {
	if len(undone) == 0 {
		return f.keepPolicies(), nil
	}
	w := wantedPolicies{specs: restoredPolicies(f.policies.specs, undone), fields: map[string]string{}}
	for _, u := range undone {
		w.fields[u.Name] = "revision"
	}
	return f.comparePolicies(w)
}

// restoredPolicies are definitions, by name, after changes of them were undone in the order of the list.
func restoredPolicies(now []quota.PolicySpec, undone []quota.PolicyUndo) map[string]quota.PolicySpec {
	specs := map[string]quota.PolicySpec{}
	for _, spec := range now {
		specs[spec.Name] = spec
	}
	for _, u := range undone {
		if specs[u.Name] = u.PolicySpec; u.Added {
			delete(specs, u.Name)
		}
	}
	return specs
}

// checkRemovedPolicies refuses to remove definitions that trees use. Trees that the change names are not asked: their
// wanted state is checked.
func (f *forest) checkRemovedPolicies(c policyChange, named map[string]bool) *quota.Error {
	var err *quota.Error
	for _, name := range c.removed {
		users := f.treesWith(func(policy string) bool { return policy == name }, named)
		if len(users) > 0 {
			err = err.Join(quota.Errorf(quota.InUse, "",
				"policy %s cannot be removed while trees use it: %s; give them another policy first", name,
				listTexts(users)))
		}
	}
	return err
}

// listTexts joins texts as far as quota.MaxReason allows.
func listTexts(list []string) string {
	length := 0
	for i, text := range list {
		if length += len(text); length > quota.MaxReason {
			return fmt.Sprintf("%s and %d more", strings.Join(list[:i], ", "), len(list)-i)
		}
	}
	return strings.Join(list, ", ")
}

// treesWith are the trees, by name, with a node that names a policy which matches, except for some.
func (f *forest) treesWith(matches func(policy string) bool, except map[string]bool) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.trees)) {
		uses := false
		f.trees[name].root.walk(func(n *node) bool {
			uses = n.spec.Policy != "" && matches(n.spec.Policy)
			return !uses
		})
		if uses && !except[name] {
			list = append(list, name)
		}
	}
	return list
}

// redefinedTrees are the changes of trees that a redefinition affects although the command does not name them: each
// tree as it is, under the new rules.
func (f *forest) redefinedTrees(c policyChange, named map[string]bool) []treeChange {
	if len(c.redefined) == 0 {
		return nil
	}
	isRedefined := func(policy string) bool { _, redefined := c.redefined[policy]; return redefined }
	var list []treeChange
	for _, name := range f.treesWith(isRedefined, named) {
		list = append(list, treeChange{spec: f.trees[name].present(), field: "policies", redefined: true})
	}
	return list
}

// usePolicies makes a set of policies the present one.
func (f *forest) usePolicies(s *policySet) {
	f.bytes += s.bytes() - f.policies.bytes()
	f.policies = s
	for _, t := range f.trees { // each gets the same
		t.policies = s
	}
}

// usedPolicies are the definitions that a tree uses, by name.
func (t *tree) usedPolicies() []quota.PolicySpec {
	used := map[string]bool{}
	t.root.walk(func(n *node) bool {
		used[n.spec.Policy] = true
		return true
	})
	return slices.DeleteFunc(slices.Clone(t.policies.specs), func(s quota.PolicySpec) bool { return !used[s.Name] })
}
