package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// maxDoubts bounds how many allocations of one group may be uncertain: each takes a bit of the model's state.
const maxDoubts = 64

// checkLinearizable searches an order of all operations on each group of trees, and on each item, that the sequential
// model accepts: every granted request fits, every denied one does not, every read shows the current state, and each
// operation takes effect between its call and its return. Trees whose allocations expire are not searched; only the
// promises are checked there.
func (s *timeline) checkLinearizable(o Options, explained *Verdict) *Verdict {
	v := &Verdict{
		Promise: "linearizable", Title: "there is an order that explains all answers",
		Counts: map[string]int{},
	}
	for _, trees := range s.treeGroups() {
		s.checkGroup(v, o, explained, trees)
	}
	s.checkItems(v, o)
	return v
}

// treeGroups returns the trees that must be searched together because some requests claim in several of them.
func (s *timeline) treeGroups() [][]string {
	joined := map[string][]string{}
	for p := range s.limits {
		joined[p.tree] = []string{p.tree}
	}
	for _, l := range s.allocations {
		for _, claim := range l.firstRequest().Claims {
			joinGroups(joined, l.firstRequest().Claims[0].Tree, claim.Tree)
		}
	}
	var all [][]string
	for tree, group := range joined {
		slices.Sort(group)
		if group[0] == tree {
			all = append(all, group)
		}
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

func joinGroups(groups map[string][]string, a, b string) {
	if groups[a] == nil || groups[b] == nil || slices.Contains(groups[a], b) {
		return
	}
	both := slices.Concat(groups[a], groups[b])
	for _, tree := range both {
		groups[tree] = both
	}
}

func (s *timeline) checkGroup(v *Verdict, o Options, explained *Verdict, group []string) {
	trees := map[string]bool{}
	for _, tree := range group {
		trees[tree] = true
	}
	model := newModelContext(s.limits, trees)
	steps, why := s.modelSteps(model, trees)
	if why != "" {
		if why != unseenEnds {
			v.Undecided = strings.Join(group, ", ") + ": " + why
		}
		return
	}
	constrainByIndex(steps)
	v.Count("operations", len(steps))
	model.checkReasons = true
	result, info := porcupine.CheckOperationsVerbose(model.porcupineModel(), steps, o.Timeout)
	name := strings.Join(group, "+")
	if result == porcupine.Illegal {
		writePicture(v, o, name, model.porcupineModel(), info)
		model.checkReasons = false
		if porcupine.CheckOperationsTimeout(model.porcupineModel(), steps, o.Timeout) == porcupine.Ok {
			explained.AddViolation("%s: there is an order for all answers, but not with the reasons of all denials; %s",
				name, describeLongestOrder(steps, info))
			return
		}
	}
	addSearchResult(v, result, name, steps, info)
}

func addSearchResult(
	v *Verdict, result porcupine.CheckResult, name string, steps []porcupine.Operation,
	info porcupine.LinearizationInfo,
) {
	switch result {
	case porcupine.Ok:
		v.Count("orders found", 1)
	case porcupine.Illegal:
		v.AddViolation("%s: no order of %d operations explains all answers; %s", name, len(steps),
			describeLongestOrder(steps, info))
	case porcupine.Unknown:
		v.Undecided = fmt.Sprintf("%s: no order of %d operations was found in time, and none was excluded", name,
			len(steps))
	}
}

// describeLongestOrder says how far the longest partial linearization comes and which operation cannot follow.
func describeLongestOrder(steps []porcupine.Operation, info porcupine.LinearizationInfo) string {
	longest := []int{}
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	done := map[int]bool{}
	for _, i := range longest {
		done[i] = true
	}
	next := -1
	for i := range steps {
		if !done[i] && (next < 0 || steps[i].Return < steps[next].Return) {
			next = i
		}
	}
	if next < 0 {
		return "the longest one has all"
	}
	return fmt.Sprintf("the longest one has %d, and the first to end that is not in it is: %v", len(longest),
		steps[next].Input)
}

func writePicture(v *Verdict, o Options, name string, m porcupine.Model, info porcupine.LinearizationInfo) {
	if o.Pictures == "" {
		return
	}
	path := filepath.Join(o.Pictures, "linearizable-"+strings.NewReplacer(":", "-", "/", "-").Replace(name)+".html")
	if err := os.MkdirAll(o.Pictures, 0o750); err != nil {
		v.AddViolation("%s: cannot make the folder for its picture: %v", name, err)
	} else if err := porcupine.VisualizePath(m, info, path); err != nil {
		v.AddViolation("%s: cannot write its picture: %v", name, err)
	}
}
