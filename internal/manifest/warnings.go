package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// maxWarnings is the most warnings of a manifest; the rest are counted in the last one.
const maxWarnings = 10

// Warning is a part of a valid manifest that is probably a mistake, with its position.
type Warning struct {
	// File is the name that was passed to ParseWithWarnings.
	File string
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Message says what is odd and why.
	Message string
}

// String returns the position and the message in the format of compilers.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: warning: %s", w.File, w.Line, w.Column, w.Message)
}

// ParseWithWarnings is Parse, and also returns names and labels without quotes that are no texts for some YAML tools,
// and the limits of users and groups that are above the limit of the very node where they are set, all in the order of
// the text. The limit of the node is reached first, so such a limit has no effect. A manifest with more than ten has a
// last warning that counts the others.
//
// Nodes whose policy lets them borrow are left out, because they may hold more than their limit. So are nodes whose
// policy is not known: one that the manifest does not define, or, in the text of a subtree, one that is inherited.
func ParseWithWarnings(file string, text []byte) (*Manifest, []Warning, error) {
	p := &parser{file: file, origins: map[*quoratev1.PrincipalLimit]origin{}}
	m, err := p.parseText(text)
	if err != nil {
		return nil, nil, err
	}
	c := &limitChecker{parser: p, policies: policiesOf(m)}
	for _, t := range m.Trees {
		rootPolicy := cmp.Or(t.GetPolicy(), quota.DefaultPolicy)
		if m.At != nil {
			rootPolicy = "" // the text of a subtree does not have it
		}
		c.checkTree(t, rootPolicy)
	}
	c.warnings = append(c.warnings, p.disputed...)
	return m, c.firstWarnings(), nil
}

type origin struct {
	what         string
	line, column int
}

// policiesOf are the policies that a manifest can name without the help of a server.
func policiesOf(m *Manifest) map[string]*policy.Policy {
	known := maps.Clone(map[string]*policy.Policy(policy.Presets()))
	for _, message := range m.Policies {
		if defined, problem := policy.Presets().Define(PolicySpec(message)); problem == nil {
			known[message.GetName()] = defined
		}
	}
	return known
}

type limitChecker struct {
	*parser
	policies map[string]*policy.Policy
	units    map[string]quoratev1.Unit // of the present tree
	warnings []Warning
}

// checkTree takes the empty name for a policy that is not known.
func (c *limitChecker) checkTree(t *quoratev1.Tree, rootPolicy string) {
	c.units = map[string]quoratev1.Unit{}
	for _, r := range t.GetResources() {
		c.units[r.GetName()] = r.GetUnit()
	}
	c.checkNode("tree", rootPolicy, &quoratev1.Node{
		Limits: t.GetLimits(), Applications: t.GetApplications(), Principals: t.GetPrincipals(),
	})
	inForce := map[string]string{"": rootPolicy}
	for _, n := range t.GetNodes() { // sorted by path, so a node comes after its parent
		parent := n.GetPath()[:max(strings.LastIndexByte(n.GetPath(), '/'), 0)]
		inForce[n.GetPath()] = cmp.Or(n.GetPolicy(), inForce[parent])
		c.checkNode("node", inForce[n.GetPath()], n)
	}
}

func (c *limitChecker) checkNode(kind, policyName string, n *quoratev1.Node) {
	if rules := c.policies[policyName]; rules == nil || rules.Borrowing != policy.BorrowNothing {
		return
	}
	for _, principal := range n.GetPrincipals() {
		for _, resource := range slices.Sorted(maps.Keys(principal.GetLimits())) {
			most, limited := n.GetLimits()[resource].GetValue().(*quoratev1.Limit_Amount)
			own, bounded := Bound(principal.GetLimits()[resource])
			if limited && bounded && own > most.Amount {
				unit := c.units[resource]
				c.addWarning(principal, resource, quantity.Format(own, unit), kind, quantity.Format(most.Amount, unit))
			}
		}
		own, bounded := Bound(principal.GetApplications())
		if most, limited := Bound(n.GetApplications()); limited && bounded && own > most {
			c.addWarning(principal, "applications", strconv.FormatInt(own, 10),
				kind, strconv.FormatInt(most, 10))
		}
	}
}

func (c *limitChecker) addWarning(principal *quoratev1.PrincipalLimit, resource, own, kind, most string) {
	at := c.origins[principal]
	c.warnings = append(c.warnings, Warning{c.file, at.line, at.column, fmt.Sprintf(
		"%s: its limit of %s is %s, but the %s itself has the limit %s, which is reached first",
		at.what, resource, own, kind, most)})
}

// firstWarnings also counts the others.
func (c *limitChecker) firstWarnings() []Warning {
	slices.SortStableFunc(c.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(c.warnings) <= maxWarnings {
		return c.warnings
	}
	next := c.warnings[maxWarnings]
	next.Message = fmt.Sprintf("%d more warnings, from here on", len(c.warnings)-maxWarnings)
	return append(c.warnings[:maxWarnings:maxWarnings], next)
}
