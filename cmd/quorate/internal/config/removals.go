package config

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// maxRemovalsNamed is how many trees and nodes a refusal names; the rest are counted.
const maxRemovalsNamed = 20

// removals are the trees and nodes that a change would remove, as a plan of it answers.
type removals struct {
	places []string // all of them; a tree that goes counts once, with everything in it
	// needConsent is true if a tree goes, or more than half of the nodes of a tree that stays. An empty or truncated
	// text does that, and so does one of another cluster.
	needConsent bool
}

// nodeCounter answers how many nodes a tree has before a change that adds and removes so many.
type nodeCounter func(tree string, added, removed int) (int, error)

func findRemovals(result *quoratev1.ConfigurationResult, before nodeCounter) (removals, error) {
	var r removals
	type count struct{ added, removed int }
	counts := map[string]*count{}
	var trees []string // in the order of the changes
	for _, c := range result.GetChanges() {
		isAdded := c.GetKind() == quoratev1.ChangeKind_CHANGE_KIND_ADDED
		isRemoved := c.GetKind() == quoratev1.ChangeKind_CHANGE_KIND_REMOVED
		switch {
		case c.GetField() == "tree" && isRemoved:
			r.places = append(r.places, "tree "+c.GetTree())
			r.needConsent = true
		case c.GetField() == "node" && (isAdded || isRemoved):
			if counts[c.GetTree()] == nil {
				counts[c.GetTree()] = &count{}
				trees = append(trees, c.GetTree())
			}
			if isAdded {
				counts[c.GetTree()].added++
				continue
			}
			counts[c.GetTree()].removed++
			r.places = append(r.places, cli.PlaceOf(c.GetTree(), c.GetNode()).String())
		}
	}
	for _, tree := range trees {
		n := *counts[tree]
		if r.needConsent || n.removed == 0 {
			continue
		}
		existing, err := before(tree, n.added, n.removed)
		if err != nil {
			return r, err
		}
		r.needConsent = 2*n.removed > existing
	}
	return r, nil
}

func (r removals) text() string {
	named := r.places[:min(len(r.places), maxRemovalsNamed)]
	text := strings.Join(named, ", ")
	if more := len(r.places) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// check refuses removals to which the caller has not consented by their number.
func (r removals) check(allowed removalsFlag) error {
	n := len(r.places)
	if !r.needConsent || allowed.value != nil && *allowed.value == n {
		return nil
	}
	given := ""
	if allowed.value != nil {
		given = fmt.Sprintf(", not %d", *allowed.value)
	}
	err := fmt.Errorf("this would remove %s%s: %s; if that is intended, repeat with --allow-removals %d",
		countNoun(n, "tree or node"), given, r.text(), n)
	if n > 1 {
		err = fmt.Errorf("this would remove %d trees and nodes%s: %s; if that is intended, repeat with "+
			"--allow-removals %d", n, given, r.text(), n)
	}
	return &cli.FixedError{Err: err, Code: cli.ExitDenied}
}

// removalsFlag is the number of trees and nodes that a change may remove.
type removalsFlag struct {
	value *int
}

// Set reads the number.
func (f *removalsFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return cli.Usagef("%q is not a number of trees and nodes: use the one that the plan names", text)
	}
	f.value = &n
	return nil
}

// String writes the number, or nothing.
func (f *removalsFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.Itoa(*f.value)
}

// Type is shown in help texts.
func (f *removalsFlag) Type() string { return "N" }

// guardRemovals plans a change and refuses it if it removes more than the caller has consented to. A change with
// consent is tied to the revision of that plan, so that nothing else is removed.
func (o *changeOptions) guardRemovals(
	ctx context.Context, before nodeCounter, call func(context.Context, bool) (changeAnswer, error),
) (answer changeAnswer, err error) {
	if answer, err = call(ctx, true); err != nil {
		return nil, err
	}
	found, err := findRemovals(answer.GetResult(), before)
	if err != nil || !found.needConsent {
		return answer, err
	}
	if o.dryRun {
		o.Messagef("apply needs --allow-removals %d: %s", len(found.places), found.text())
		return answer, nil
	}
	if err := found.check(o.allowed); err != nil {
		return nil, err
	}
	o.tieToPlan(answer)
	return answer, nil
}

// tieToPlan lets the change be made only on the revision of its plan, unless the caller has named one.
func (o *changeOptions) tieToPlan(plan changeAnswer) {
	if o.expected.value == nil {
		revision := plan.GetResult().GetRevision()
		o.expected.value = &revision
	}
}

// countFromText counts the nodes of a tree before a change to the nodes of a text.
func countFromText(request *quoratev1.ApplyTreesRequest) nodeCounter {
	return func(tree string, added, removed int) (int, error) {
		texts := slices.Clone(request.GetTrees())
		if request.GetSubtree() != nil {
			texts = append(texts, request.GetSubtree().GetText())
		}
		for _, t := range texts {
			if t.GetName() == tree {
				return max(len(t.GetNodes())+removed-added, removed), nil
			}
		}
		return removed, nil
	}
}

// countOnServer asks for the nodes of a tree. A tree that is not visible whole counts as one of which everything goes.
func countOnServer(ctx context.Context, quorate *client.Client) nodeCounter {
	return func(tree string, _, removed int) (int, error) {
		answer, err := quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: tree})
		if err != nil {
			return 0, err
		}
		return max(len(answer.GetTree().GetNodes()), removed), nil
	}
}
