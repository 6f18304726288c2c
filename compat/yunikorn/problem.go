package yunikorn

import (
	"fmt"
	"strings"
)

// Short names of the rules, as Problem.Rule has them.
const (
	ruleYAML               = "yaml"
	ruleBounds             = "bounds"
	rulePartitionDuplicate = "partition-duplicate"
	ruleQueuesMissing      = "queues-missing"
	ruleRootResources      = "root-resources"
	ruleRootMismatch       = "root-partition-mismatch"
	ruleACL                = "acl"
	ruleQueueName          = "queue-name"
	ruleQueueDuplicate     = "queue-duplicate"
	ruleQuantity           = "quantity"

	ruleLimitUnnamed       = "limit-nobody"
	ruleLimitZeroResources = "limit-zero-resources"
	ruleLimitNothing       = "limit-nothing"
	ruleLimitAppsOverQueue = "limit-apps-over-queue"
	ruleLimitResOverQueue  = "limit-res-over-queue"
	ruleGroupWildcardAlone = "group-wildcard-alone"

	ruleQueueGuaranteedOverMax = "queue-guaranteed-over-max"
	ruleQueueMaxOverParent     = "queue-max-over-parent"
	ruleQueueGuaranteedSum     = "queue-guaranteed-sum"
	ruleQueueSumOverMax        = "queue-guaranteed-sum-over-max"
	ruleQueueAppsOverParent    = "queue-apps-over-parent"

	rulePlacementName   = "placement-name"
	rulePlacementFilter = "placement-filter"
	rulePlacementQueue  = "placement-queue"
	ruleNodeSort        = "node-sort-policy"

	ruleStrictCount        = "strict-count"
	ruleStrictInheritedMax = "strict-inherited-max"
)

// maxProblems is the number of problems that are kept; the last problem has the number of the others.
const maxProblems = 1000

// Problem is one thing that is wrong in a configuration.
type Problem struct {
	// Path is the place in the file, such as "partitions[0].queues[0].limits[1].users[2]"; "line 7" if the text could not
	// be read; empty for the whole file.
	Path string
	// Queue is the queue it is about, such as "root.dev"; empty if it is about none.
	Queue string
	// Rule is the short name of the broken rule, such as "user-name". It does not change between releases.
	Rule string
	// Text is a sentence for people: the value, the rule, and mostly the way out.
	Text string
}

// String puts the place first.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Path)
	if p.Queue != "" {
		fmt.Fprintf(&b, " (%s)", p.Queue)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s [%s]", p.Text, p.Rule)
	return b.String()
}

// ConfigErrors lists the problems of a configuration: the first 1,000 and, if there are more, one with their number.
// The first is the one that YuniKorn, which stops at the first, would report.
type ConfigErrors []Problem

// Error gives every problem a line.
func (p ConfigErrors) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p ConfigErrors) errOrNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func clipText(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
