package yunikorn

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Option changes how a configuration is judged.
type Option func(*validator)

// Strict also refuses what the original lets pass although it is hardly meant: a named limit that hides the wildcard
// above it from the levels below, a limit above an inherited maximum of a queue, and counts with a fraction. What
// passes strictly passes there; what passes there may be refused here.
func Strict() Option { return func(v *validator) { v.strict = true } }

// Validate tells whether YuniKorn would accept a queue configuration, given as YAML. The error is of type
// [ConfigErrors]; its first is what YuniKorn itself would name.
//
// Beyond the original there are bounds, so that a hostile text costs little more than its size: it has at most
// [MaxSize] bytes and 200,000 values, a map has at most 256 keys, and queues are at most 64 levels below root.
func Validate(text []byte, options ...Option) error {
	_, problems := validated(text, options)
	return problems.err()
}

// validated reads and judges a configuration; the roots, one for each partition, are complete if there is no problem.
func validated(text []byte, options []Option) (*checked, ConfigErrors) {
	c, document, problems := parse(text)
	if len(problems) > 0 {
		return nil, problems
	}
	v := &validator{}
	for _, option := range options {
		option(v)
	}
	result := &checked{config: c}
	names := map[string]bool{}
	for i := range c.Partitions {
		result.roots = append(result.roots, v.partition(&c.Partitions[i], fmt.Sprintf("partitions[%d]", i), names))
	}
	if v.strict && document != nil {
		v.counts(document)
	}
	return result, v.found()
}

// checked is a configuration without problems.
type checked struct {
	*config
	roots []*node
}

type validator struct {
	strict   bool
	problems ConfigErrors
	more     int // that were not kept
}

func (v *validator) fail(path, queue, rule, format string, args ...any) {
	v.tell(Problem{path, queue, rule, fmt.Sprintf(format, args...)})
}

func (v *validator) tell(problem Problem) {
	if len(v.problems) == maxProblems {
		v.more++
		return
	}
	v.problems = append(v.problems, problem)
}

// found are the problems so far.
func (v *validator) found() ConfigErrors {
	if v.more == 0 {
		return v.problems
	}
	return append(v.problems, Problem{Rule: ruleBounds, Text: fmt.Sprintf("and %d more problems", v.more)})
}

// understood tells, once, what of a map of quantities could not be read.
func (v *validator) understood(r *reading) bool {
	if !r.told {
		r.told = true
		for _, problem := range r.wrong {
			v.tell(problem)
		}
	}
	return len(r.wrong) == 0
}

// partition makes all checks in the order of the original.
func (v *validator) partition(p *partition, path string, names map[string]bool) *node {
	name := strings.ToLower(partitionName(p))
	if names[name] {
		v.fail(path+".name", "", rulePartitionDuplicate, "there is another partition %q: names are compared without case, "+
			"and a partition without a name is the one called default", clip(partitionName(p)))
	}
	names[name] = true
	if p.Queues == nil {
		v.fail(path, "", ruleQueuesMissing, "the partition has no queues: write queues: [] if there are none")
		return nil
	}
	root, err := planted(p, path)
	if err != nil {
		v.tell(*err)
		return nil
	}
	v.root(p, root, path)
	v.structure(root)
	v.guaranteed(root, newScoped[int64]())
	v.placement(p, root, path)
	v.nodeSort(p, path)
	v.queueApplications(root)
	v.limitResources(root)
	v.limitApplications(root)
	if v.strict {
		v.inheritedMax(root, newScoped[int64]())
	}
	return root
}

func partitionName(p *partition) string {
	if p.Name == "" || strings.EqualFold(p.Name, "default") {
		return "default"
	}
	return p.Name
}

func (v *validator) root(p *partition, root *node, path string) {
	if root.Resources.Guaranteed != nil || root.Resources.Max != nil {
		v.fail(root.path+".resources", root.name, ruleRootResources,
			"root has the size of the cluster: leave guaranteed and max out, also empty ones")
	}
	if len(p.Limits) > 0 && len(root.Limits) > 0 && !reflect.DeepEqual(p.Limits, root.Limits) {
		v.fail(path+".limits", root.name, ruleRootMismatch, "the limits of the partition and of root differ: "+
			"leave one of the two lists out, or write both in the same order, with the same words and numbers")
	}
}

// structure checks the queues from above, each with its limits and the names of its children.
func (v *validator) structure(n *node) {
	v.acl(n, "adminacl", n.AdminACL)
	v.acl(n, "submitacl", n.SubmitACL)
	v.limits(n)
	seen := map[string]bool{}
	for _, child := range n.children {
		name := strings.ToLower(child.Name)
		switch {
		case !queueName.MatchString(child.Name):
			v.fail(child.path+".name", child.name, ruleQueueName,
				"%q is no name of a queue: 1 to 64 letters, digits and _ : # / @ -", clip(child.Name))
		case seen[name]:
			v.fail(child.path+".name", child.name, ruleQueueDuplicate,
				"%q is here twice: names of queues are compared without case", child.Name)
		}
		seen[name] = true
	}
	for _, child := range n.children {
		v.structure(child)
	}
}

func (v *validator) acl(n *node, key, list string) {
	if len(strings.Fields(list)) > 2 {
		v.fail(n.path+"."+key, n.name, ruleACL,
			"%q has more than two parts: users, one space, and groups, each joined by commas",
			clip(list))
	}
}

func (v *validator) nodeSort(p *partition, path string) {
	policy := p.NodeSortPolicy
	if !slices.Contains([]string{"", "fair", "binpacking"}, policy.Type) {
		v.fail(path+".nodesortpolicy.type", "", ruleNodeSort, "there is no policy %q: fair or binpacking", clip(policy.Type))
	}
	for _, kind := range slices.Sorted(maps.Keys(policy.ResourceWeights)) {
		if policy.ResourceWeights[kind] < 0 {
			v.fail(path+".nodesortpolicy.resourceweights."+clip(kind), "", ruleNodeSort, "a weight may not be negative")
		}
	}
}
