package yunikorn

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Option configures Validate and Convert.
type Option func(*validator)

// Strict also refuses what the original lets pass although it is hardly meant: a named limit that hides the wildcard
// above it from the levels below, a limit above an inherited maximum of a queue, and counts with a fraction. What
// passes strictly passes there; what passes there may be refused here.
func Strict() Option { return func(v *validator) { v.strict = true } }

// Count makes Convert register further resource types. The original counts every type that a request names and limits
// those that the configuration names; a tree counts what it registers. Validate ignores it.
func Count(types ...string) Option {
	return func(v *validator) { v.counted = append(v.counted, types...) }
}

// Validate returns nil if YuniKorn would accept a queue configuration, given as YAML. The error is of type
// [ConfigErrors]; its first element is the one that YuniKorn reports.
//
// Beyond the original there are bounds, so that a hostile text costs little more than its size: it has at most
// [MaxSize] bytes and 200,000 values, a map has at most 256 keys, and queues are at most 64 levels below root.
func Validate(text []byte, options ...Option) error {
	_, problems := validateConfig(text, options)
	return problems.errOrNil()
}

// validateConfig returns one root for each partition. They are complete if there is no problem.
func validateConfig(text []byte, options []Option) (*checked, ConfigErrors) {
	c, document, problems := parseConfig(text)
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
		result.roots = append(result.roots, v.checkPartition(&c.Partitions[i], fmt.Sprintf("partitions[%d]", i), names))
	}
	if v.strict && document != nil {
		v.checkCounts(document)
	}
	return result, v.allProblems()
}

type checked struct {
	*config
	roots []*node
}

type validator struct {
	strict   bool
	counted  []string // types to register that the configuration need not name
	problems ConfigErrors
	more     int // that were not kept
}

func (v *validator) addProblem(path, queue, rule, format string, args ...any) {
	v.keepProblem(Problem{path, queue, rule, fmt.Sprintf(format, args...)})
}

func (v *validator) keepProblem(problem Problem) {
	if len(v.problems) == maxProblems {
		v.more++
		return
	}
	v.problems = append(v.problems, problem)
}

func (v *validator) allProblems() ConfigErrors {
	if v.more == 0 {
		return v.problems
	}
	return append(v.problems, Problem{Rule: ruleBounds, Text: fmt.Sprintf("and %d more problems", v.more)})
}

// reportUnread reports, once, which quantities of a map could not be read.
func (v *validator) reportUnread(r *reading) bool {
	if !r.reported {
		r.reported = true
		for _, problem := range r.wrong {
			v.keepProblem(problem)
		}
	}
	return len(r.wrong) == 0
}

// checkPartition keeps the order of the checks of the original.
func (v *validator) checkPartition(p *partition, path string, names map[string]bool) *node {
	name := strings.ToLower(partitionName(p))
	if names[name] {
		v.addProblem(
			path+".name",
			"",
			rulePartitionDuplicate,
			"there is another partition %q: names are compared without case, "+
				"and a partition without a name is the one called default",
			clipText(partitionName(p)),
		)
	}
	names[name] = true
	if p.Queues == nil {
		v.addProblem(path, "", ruleQueuesMissing, "the partition has no queues: write queues: [] if there are none")
		return nil
	}
	root, err := newQueueTree(p, path)
	if err != nil {
		v.keepProblem(*err)
		return nil
	}
	v.checkRoot(p, root, path)
	v.checkQueues(root)
	v.checkGuaranteed(root, newScopedMap[int64]())
	v.checkPlacement(p, root, path)
	v.nodeSort(p, path)
	v.queueApplications(root)
	v.limitResources(root)
	v.limitApplications(root)
	if v.strict {
		v.checkInheritedMax(root, newScopedMap[int64]())
	}
	return root
}

func partitionName(p *partition) string {
	if p.Name == "" || strings.EqualFold(p.Name, "default") {
		return "default"
	}
	return p.Name
}

func (v *validator) checkRoot(p *partition, root *node, path string) {
	if root.Resources.Guaranteed != nil || root.Resources.Max != nil {
		v.addProblem(root.path+".resources", root.name, ruleRootResources,
			"root has the size of the cluster: remove guaranteed and max, even if they are empty")
	}
	if len(p.Limits) > 0 && len(root.Limits) > 0 && !reflect.DeepEqual(p.Limits, root.Limits) {
		v.addProblem(path+".limits", root.name, ruleRootMismatch, "the limits of the partition and of root differ: "+
			"leave one of the two lists out, or write both in the same order, with the same words and numbers")
	}
}

// checkQueues checks the queues from above, each with its limits and the names of its children.
func (v *validator) checkQueues(n *node) {
	v.checkACL(n, "adminacl", n.AdminACL)
	v.checkACL(n, "submitacl", n.SubmitACL)
	v.checkLimits(n)
	seen := map[string]bool{}
	for _, child := range n.children {
		name := strings.ToLower(child.Name)
		switch {
		case !queueName().MatchString(child.Name):
			v.addProblem(child.path+".name", child.name, ruleQueueName,
				"%q is not a name of a queue: 1 to 64 letters, digits and _ : # / @ -", clipText(child.Name))
		case seen[name]:
			v.addProblem(child.path+".name", child.name, ruleQueueDuplicate,
				"%q is given twice: names of queues are compared without case", child.Name)
		}
		seen[name] = true
	}
	for _, child := range n.children {
		v.checkQueues(child)
	}
}

func (v *validator) checkACL(n *node, key, list string) {
	if len(strings.Fields(list)) > 2 {
		v.addProblem(n.path+"."+key, n.name, ruleACL,
			"%q has more than two parts: users, one space, and groups, each joined by commas",
			clipText(list))
	}
}

func (v *validator) nodeSort(p *partition, path string) {
	policy := p.NodeSortPolicy
	if !slices.Contains([]string{"", "fair", "binpacking"}, policy.Type) {
		v.addProblem(
			path+".nodesortpolicy.type",
			"",
			ruleNodeSort,
			"unknown policy %q: allowed are fair and binpacking",
			clipText(policy.Type),
		)
	}
	for _, kind := range slices.Sorted(maps.Keys(policy.ResourceWeights)) {
		if policy.ResourceWeights[kind] < 0 {
			v.addProblem(
				path+".nodesortpolicy.resourceweights."+clipText(kind),
				"",
				ruleNodeSort,
				"a weight may not be negative",
			)
		}
	}
}

// checkInheritedMax holds limits against the maxima of the queues above too, not only against the queue's own.
func (v *validator) checkInheritedMax(n *node, most *scopedMap[int64]) {
	for _, e := range n.entries {
		if kind, more := exceedsAny(most.values, e.resources.amounts); more {
			v.addProblem(
				e.path+".maxresources."+clipText(kind),
				n.name,
				ruleStrictInheritedMax,
				"%d %s is more than the maximum of %d of a queue above",
				e.resources.amounts[kind],
				clipText(kind),
				most.values[kind],
			)
		}
	}
	mark := most.undoMark()
	lowerTo(most, n.max.amounts)
	for _, child := range n.children {
		v.checkInheritedMax(child, most)
	}
	most.undoTo(mark)
}

// checkCounts refuses counts with a fraction or an exponent, which the YAML library cuts off silently: -1.5 becomes the
// largest count there is.
func (v *validator) checkCounts(n *yaml.Node) {
	for i, child := range n.Content {
		isValue := n.Kind == yaml.MappingNode && i%2 == 1
		if isValue && n.Content[i-1].Value == "maxapplications" && child.ShortTag() == "!!float" {
			v.addProblem(
				fmt.Sprintf("line %d", child.Line),
				"",
				ruleStrictCount,
				"%s is not a whole number in digits",
				clipText(child.Value),
			)
		}
		v.checkCounts(child)
	}
}
