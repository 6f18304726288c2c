package quota

import (
	"fmt"
	"slices"
	"strings"
)

// Decision is the answer to an Allocate with its reasons.
type Decision struct {
	// Granted is true if everything is held, or in a dry run would be.
	Granted bool
	// Violations are all limits that the request would break: claims in the order of the request, levels from the
	// claimed node up to the root, resources by name. A node shared by several claims is named once.
	Violations []Violation
}

// Violation is one limit that a request would break.
type Violation struct {
	Tree, Node, Resource string
	// Limit is what is in force, Used what the subtree holds, Requested what the whole request asks for in it.
	Limit, Used, Requested Amount
}

// Missing is how much room lacks.
func (v Violation) Missing() Amount { return v.Used.plus(v.Requested) - v.Limit }

// hopeless is true if the request alone is larger than the limit, whatever is released.
func (v Violation) hopeless() bool { return v.Requested > v.Limit }

// NeverFits is true if the request alone is larger than some limit, whatever is released.
func (d Decision) NeverFits() bool { return slices.ContainsFunc(d.Violations, Violation.hopeless) }

// Explain says the decision in one sentence for a person, naming every violated level.
func (d Decision) Explain() string {
	if d.Granted {
		return "granted"
	}
	parts := make([]string, len(d.Violations))
	for i, v := range d.Violations {
		parts[i] = fmt.Sprintf("%s holds %d of %d %s, %d requested, %d missing",
			Place(v.Tree, v.Node), v.Used, v.Limit, v.Resource, v.Requested, v.Missing())
		if v.hopeless() {
			parts[i] += " (more than the whole limit: it cannot fit until that is raised)"
		}
	}
	return "denied: " + strings.Join(parts, "; ")
}

// Place writes a node as people do: "tree:path/of/node", or "tree" for its root.
func Place(tree, path string) string {
	if path == "" {
		return tree
	}
	return tree + ":" + path
}
