package yunikorn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	ruleName = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9_]*$`)
	// pattern finds what makes a text a regular expression rather than a misspelt name.
	pattern = regexp.MustCompile(`[\^$*+?()\[{}|]`)
)

// checkPlacement checks rules, chains and queues of placement rules. Quorate does not place applications, but YuniKorn
// rejects configurations with faults in them.
func (v *validator) checkPlacement(p *partition, root *node, path string) {
	for i := range p.PlacementRules {
		v.placementRule(&p.PlacementRules[i], fmt.Sprintf("%s.placementrules[%d]", path, i))
	}
	targets := make([]target, len(p.PlacementRules))
	for i := range p.PlacementRules {
		var legal bool
		if targets[i], legal = fixedTarget(&p.PlacementRules[i]); !legal {
			v.addProblem(fmt.Sprintf("%s.placementrules[%d]", path, i), "", rulePlacementQueue,
				"only the outermost parent of a rule may give a full path that begins with root")
		}
	}
	for i, t := range targets {
		if why := t.whyMissing(root, p.PlacementRules[i].Create); why != "" {
			v.addProblem(fmt.Sprintf("%s.placementrules[%d]", path, i), clipText(t.path), rulePlacementQueue, "%s", why)
		}
	}
}

func (v *validator) placementRule(r *placementRule, path string) {
	if !ruleName.MatchString(r.Name) {
		v.addProblem(path+".name", "", rulePlacementName,
			"%q is not a name of a rule: a letter or _, then letters, digits and _", clipText(r.Name))
	}
	if r.Parent != nil {
		v.placementRule(r.Parent, path+".parent")
	}
	if t := r.Filter.Type; t != "" && !strings.EqualFold(t, "allow") && !strings.EqualFold(t, "deny") {
		v.addProblem(path+".filter.type", "", rulePlacementFilter, "%q is not allow or deny", clipText(t))
	}
	v.placementNames(path, users, r.Filter.Users)
	v.placementNames(path, groups, r.Filter.Groups)
}

// placementNames checks a list of one, which is a name or a regular expression. In a longer list nothing is checked.
func (v *validator) placementNames(path string, k kind, names []string) {
	if len(names) != 1 || k.names.MatchString(names[0]) {
		return
	}
	if _, err := regexp.Compile(names[0]); err != nil || !pattern.MatchString(names[0]) {
		v.addProblem(path+".filter."+k.key, "", rulePlacementFilter,
			"%q is neither a name of a %s nor a regular expression",
			clipText(names[0]), k.word)
	}
}

// target is the longest part of a rule's queue that is known without an application.
type target struct {
	path    string
	dynamic bool // further levels depend on the application
}

// fixedTarget starts at the outermost parent and stops at the first rule that is not fixed; false if a full path stands
// further in.
func fixedTarget(rule *placementRule) (target, bool) {
	var chain []*placementRule
	for r := rule; r != nil; r = r.Parent {
		chain = append(chain, r)
	}
	path := ""
	for _, r := range slices.Backward(chain) {
		switch {
		case r.Name != "fixed":
			return target{path, true}, true
		case !strings.HasPrefix(r.Value, rootName):
			if path == "" {
				path = rootName
			}
			path += "." + r.Value
		case path != "":
			return target{}, false
		default:
			path = r.Value
		}
	}
	return target{path, false}, true
}

// whyMissing returns an empty text if the rule can use the queue, or if the queue is not known in advance.
func (t target) whyMissing(root *node, create bool) string {
	if t.path == "" {
		return ""
	}
	parts := strings.Split(strings.ToLower(t.path), ".")
	candidates, parent := []*node{root}, (*node)(nil)
	for i, part := range parts {
		if len(candidates) == 0 && !parent.Parent {
			return fmt.Sprintf("the queue %s is a leaf, so nothing can be placed below it", parent.name)
		}
		at := slices.IndexFunc(candidates, func(n *node) bool { return n.Name == part })
		if at < 0 && !create {
			return "there is no such queue, and create is false"
		}
		if at < 0 {
			return ""
		}
		parent = candidates[at]
		candidates = parent.children
		if i == len(parts)-1 && parent.Parent != t.dynamic {
			return "the queue must be a leaf, or a parent if more levels follow"
		}
	}
	return ""
}
