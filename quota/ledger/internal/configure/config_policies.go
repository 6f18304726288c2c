package configure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

type policyChange struct {
	next    *state.PolicySet
	changes []quota.Change
	undo    []quota.PolicyUndo
	// redefined has the field of the command, by name, of definitions whose rules change.
	redefined map[string]string
	removed   []string
}

func keepPolicies(f *state.Forest) policyChange { return policyChange{next: f.Policies} }

// wantedPolicies are the definitions after an ApplyTrees, by name, with the field of each.
type wantedPolicies struct {
	specs  map[string]quota.PolicySpec
	fields map[string]string
}

func planPolicies(f *state.Forest, c quota.ApplyTrees) (policyChange, *quota.Error) {
	prunes := c.Prune && len(f.Policies.Specs) > 0
	if len(c.Policies)+len(c.RemovePolicies) == 0 && !prunes {
		return keepPolicies(f), nil
	}
	w := wantedPolicies{specs: map[string]quota.PolicySpec{}, fields: map[string]string{}}
	for _, spec := range f.Policies.Specs {
		if !c.Prune {
			w.specs[spec.Name] = spec
		}
	}
	if err := removePolicies(f, c.RemovePolicies, w); err != nil {
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
	return comparePolicies(f, w)
}

func removePolicies(f *state.Forest, names []string, w wantedPolicies) *quota.Error {
	for i, name := range names {
		field := fmt.Sprintf("remove_policies[%d]", i)
		_, defined := f.Policies.Spec(name)
		switch {
		case i > 0 && names[i-1] >= name:
			return quota.Errorf(quota.Invalid, field, "policy %q is not in order, or removed twice", quota.Clip(name))
		case !defined && state.BuiltIn[name] != nil:
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
func comparePolicies(f *state.Forest, w wantedPolicies) (policyChange, *quota.Error) {
	c := policyChange{next: &state.PolicySet{}, redefined: map[string]string{}}
	if n := len(w.specs); n > f.Bounds.Policies {
		return c, quota.Errorf(quota.Full, "policies",
			"the configuration would define %d policies; at most %d are allowed: remove those that no tree uses", n,
			f.Bounds.Policies)
	}
	names := slices.Concat(slices.Collect(maps.Keys(w.specs)), slices.Collect(maps.Keys(f.Policies.Defined)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := comparePolicy(f, &c, w, name); err != nil {
			return c, err
		}
	}
	return c, nil
}

func comparePolicy(f *state.Forest, c *policyChange, w wantedPolicies, name string) *quota.Error {
	previous, defined := f.Policies.Spec(name)
	spec, wanted := w.specs[name]
	if !wanted {
		c.removed = append(c.removed, name)
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: previous})
		c.add("policy "+name, policy.DescribeSpec(previous), "")
		return nil
	}
	before := f.Policies.Defined[name]
	if defined && previous == spec {
		c.next.With(spec, before)
		return nil
	}
	field := w.fields[name]
	definition, problem := state.BuiltIn.Define(spec)
	switch {
	case problem != nil:
		return quota.Errorf(quota.Invalid, field+"."+strings.ReplaceAll(problem.Field, "-", "_"), "%s", problem.Text)
	case !defined && state.BuiltIn[name] != nil:
		return quota.Errorf(quota.Invalid, field+".name",
			"policy %s is built in and never changes; define a policy of another name", name)
	case !defined:
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: quota.PolicySpec{Name: name}, Added: true})
		c.add("policy "+name, "", policy.DescribeSpec(spec))
	default:
		c.undo = append(c.undo, quota.PolicyUndo{PolicySpec: previous})
		c.compareSwitches(previous, spec, before, definition)
		if definition.SameRules(before) {
			definition = before
		} else {
			c.redefined[name] = field
		}
	}
	c.next.With(spec, definition)
	return nil
}

// compareSwitches lists the values that differ, also those that come from the base.
func (c *policyChange) compareSwitches(previous, spec quota.PolicySpec, before, after *policy.Policy) {
	c.add("policy "+spec.Name+" base", previous.Base, spec.Base)
	for _, s := range policy.Switches() {
		c.add("policy "+spec.Name+" "+s.Name, s.Value(before), s.Value(after))
	}
}

func (c *policyChange) add(field, before, after string) {
	d := Differ{}
	d.add("", field, before, after)
	c.changes = append(c.changes, d.Changes...)
}

// undoPolicies are the definitions at the end of a walk back through the history.
func undoPolicies(f *state.Forest, undone []quota.PolicyUndo) (policyChange, *quota.Error) {
	if len(undone) == 0 {
		return keepPolicies(f), nil
	}
	w := wantedPolicies{specs: restoredPolicies(f.Policies.Specs, undone), fields: map[string]string{}}
	for _, u := range undone {
		w.fields[u.Name] = "revision"
	}
	return comparePolicies(f, w)
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
func checkRemovedPolicies(f *state.Forest, c policyChange, named map[string]bool) *quota.Error {
	var err *quota.Error
	for _, name := range c.removed {
		users := treesWith(f, func(policy string) bool { return policy == name }, named)
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

// treesWith returns the trees by name.
func treesWith(f *state.Forest, matches func(policy string) bool, except map[string]bool) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.Trees)) {
		uses := false
		f.Trees[name].Root.Walk(func(n *state.Node) bool {
			uses = n.Spec.Policy != "" && matches(n.Spec.Policy)
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
func redefinedTrees(f *state.Forest, c policyChange, named map[string]bool) []treeChange {
	if len(c.redefined) == 0 {
		return nil
	}
	isRedefined := func(policy string) bool { _, redefined := c.redefined[policy]; return redefined }
	var list []treeChange
	for _, name := range treesWith(f, isRedefined, named) {
		list = append(list, treeChange{spec: PresentSpecOf(f.Trees[name]), field: "policies", redefined: true})
	}
	return list
}

func usePolicies(f *state.Forest, s *state.PolicySet) {
	f.Bytes += s.Bytes() - f.Policies.Bytes()
	f.Policies = s
	for _, t := range f.Trees { // each gets the same
		t.Policies = s
	}
}

// UsedPolicies are the definitions that a tree uses, by name.
func UsedPolicies(t *state.Tree) []quota.PolicySpec {
	used := map[string]bool{}
	t.Root.Walk(func(n *state.Node) bool {
		used[n.Spec.Policy] = true
		return true
	})
	return slices.DeleteFunc(slices.Clone(t.Policies.Specs), func(s quota.PolicySpec) bool { return !used[s.Name] })
}
