//go:build unix

package lease

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

// runResources collects --resource, --count and --env. A resource belongs to the --at before it, or to the only tree
// that has it.
type runResources struct {
	claims    *request.Claims
	unplaced  []*quoratev1.ItemPick
	last      *quoratev1.ItemPick
	variables map[string]string // resource by variable
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

type resourceFlag struct {
	resources *runResources
}

// Set adds one item of a resource.
func (f resourceFlag) Set(text string) error {
	resource, variable, named := strings.Cut(text, "=")
	if resource == "" {
		return cli.Usagef("%q does not name a resource: write RESOURCE, or RESOURCE=VARIABLE", text)
	}
	if named {
		if err := f.resources.nameVariable(resource, variable); err != nil {
			return err
		}
	}
	pick := &quoratev1.ItemPick{Resource: resource, Count: 1}
	f.resources.last = pick
	if placed := f.resources.claims.List; len(placed) > 0 {
		last := &placed[len(placed)-1]
		last.Picks = append(last.Picks, pick)
		return nil
	}
	f.resources.unplaced = append(f.resources.unplaced, pick)
	return nil
}

// String is empty: there is no default.
func (f resourceFlag) String() string { return "" }

// Type is shown in help texts.
func (f resourceFlag) Type() string { return "string" }

type countFlag struct {
	resources *runResources
}

// Set changes the last resource.
func (f countFlag) Set(text string) error {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < 1 || count > request.MaxItems {
		return cli.Usagef("--count must be between 1 and %d, not %q", request.MaxItems, text)
	}
	if f.resources.last == nil {
		return cli.Usagef("--count %s has no resource: put --resource RESOURCE before it", text)
	}
	f.resources.last.Count = count
	return nil
}

// String is empty: there is no default.
func (f countFlag) String() string { return "" }

// Type is shown in help texts.
func (f countFlag) Type() string { return "N" }

// envFlag is --env, a variable for the items of a resource.
type envFlag struct {
	resources *runResources
}

// Set adds a variable.
func (f envFlag) Set(text string) error {
	resource, variable, _ := strings.Cut(text, "=")
	return f.resources.nameVariable(resource, variable)
}

// String is empty: there is no default.
func (f envFlag) String() string { return "" }

// Type is shown in help texts.
func (f envFlag) Type() string { return "RESOURCE=VARIABLE" }

func (r *runResources) nameVariable(resource, variable string) error {
	if resource == "" || !variableName.MatchString(variable) {
		return cli.Usagef("%q does not name a variable for the items of a resource: write RESOURCE=VARIABLE, with "+
			"letters, digits and _", resource+"="+variable)
	}
	if other, again := r.variables[variable]; again && other != resource {
		return cli.Usagef("the variable %s is given for the items of both %s and %s", variable, other, resource)
	}
	r.variables[variable] = resource
	return nil
}

// checkVariables refuses variables of resources that are not requested: a command could do harm with an empty variable.
func (r *runResources) checkVariables() error {
	asked := map[string]bool{}
	for _, pick := range r.unplaced {
		asked[pick.GetResource()] = true
	}
	for _, claim := range r.claims.List {
		for _, pick := range claim.Picks {
			asked[pick.GetResource()] = true
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(r.variables)) {
		if resource := r.variables[variable]; !asked[resource] {
			return cli.Usagef(
				"the variable %s is for items of %q, which this command does not ask for: add --resource %s",
				variable, resource, resource)
		}
	}
	return nil
}

// placeResources adds the resources without --at at the roots of the trees that have them.
func (r *runResources) placeResources(known cli.Units) error {
	for _, pick := range r.unplaced {
		tree, err := treeOf(known, pick.GetResource())
		if err != nil {
			return err
		}
		at := slices.IndexFunc(r.claims.List, func(c request.TypedClaim) bool { return c.At == cli.Place{Tree: tree} })
		if at < 0 {
			at = len(r.claims.List)
			r.claims.List = append(r.claims.List, request.TypedClaim{At: cli.Place{Tree: tree}})
		}
		r.claims.List[at].Picks = append(r.claims.List[at].Picks, pick)
	}
	r.unplaced = nil
	return nil
}

func treeOf(u cli.Units, resource string) (string, error) {
	itemized := map[string]bool{}
	var trees []string
	for _, tree := range slices.Sorted(maps.Keys(u)) {
		for name, unit := range u[tree] {
			if unit != quoratev1.Unit_UNIT_ITEMS {
				continue
			}
			itemized[name] = true
			if name == resource {
				trees = append(trees, tree)
			}
		}
	}
	switch len(trees) {
	case 1:
		return trees[0], nil
	case 0:
		return "", fmt.Errorf("no tree has items of %q; there are: %s", resource, cli.JoinNames(itemized))
	}
	return "", cli.Usagef("the trees %s have items of %q: put --at TREE[:node/path] before --resource",
		strings.Join(trees, ", "), resource)
}

func (r *runResources) itemVariables(a *quoratev1.Allocation) []string {
	var variables []string
	for _, variable := range slices.Sorted(maps.Keys(r.variables)) {
		var items []string
		for _, claim := range a.GetClaims() {
			for _, item := range claim.GetItems() {
				if item.GetResource() == r.variables[variable] {
					items = append(items, item.GetName())
				}
			}
		}
		variables = append(variables, variable+"="+strings.Join(items, " "))
	}
	return variables
}
