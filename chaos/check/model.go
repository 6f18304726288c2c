package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/chaos/history"
)

// The sequential model of a group of trees is what is used at every node. Steps whose index is known form a chain, so
// that the search only places steps whose index no answer told: see indexChain.

type opKind int

const (
	opGrant opKind = iota
	opEnd
	opDeny
	opRead
	opSetLimits
	// opChange and opDenyChange replace what a tracked allocation holds, or would have.
	opChange
	opDenyChange
)

type modelStep struct {
	kind   opKind
	id     string
	claims []history.Claim
	// minKey and maxKey bound the step's key, see logKey.
	minKey, maxKey uint64
	// minPredecessors and maxPredecessors bound how many steps of the chain are applied before this one.
	minPredecessors, maxPredecessors int
	fence                            uint64
	limits                           []history.Limit
	usage                            []history.Usage
	reasons                          []history.Violation
	// doubtBit identifies an allocation of which no answer tells whether it was granted; 0 for all others. Ending
	// such an allocation does nothing unless it was granted.
	doubtBit uint64
	// optional is true if the step may not have taken effect at all.
	optional bool
	// tracked is the number of a tracked allocation, see modelContext; 0 for all others. version is that which a change
	// or the grant of a choice makes; -1 if no answer shows it.
	tracked, version int
	// isChoice is true for the grant of a request with ranges or alternatives.
	isChoice bool
	// anyOf are the alternatives of a request that was denied.
	anyOf [][]history.Claim
	// parts are the numbers of the tracked allocations that a split makes.
	parts []int
	// onlyIfHeld is true for the end of a tracked allocation that may never have been granted.
	onlyIfHeld bool
}

func (s *modelStep) hasKnownIndex() bool { return s.minKey == s.maxKey && !s.optional }

// logKey orders writes and reads by index: a read shows the state after the entry of its index.
func logKey(index uint64, read bool) uint64 {
	k := 2 * index
	if read {
		k++
	}
	return k
}

// modelState is an immutable state of the model.
type modelState struct {
	key, fence uint64
	// chainedSteps counts the steps of the chain applied so far.
	chainedSteps int
	// doubtBits are the bits of uncertain allocations that are held.
	doubtBits    uint64
	used, limits []int64
	// held are the tracked allocations that are held.
	held []heldVersion
}

type heldVersion struct{ tracked, version int }

// modelContext is what all model states of one group share.
type modelContext struct {
	limitKeys    []limitKey
	indexOf      map[limitKey]int
	checkReasons bool
	// tracked are allocations whose holding changes. The state says which version of each is in force, and versions has
	// what each version holds at each limit, by the number of the allocation less one.
	tracked  map[*allocationHistory]int
	versions [][][]int64
}

func newModelContext(limits limitHistory, trees map[string]bool) *modelContext {
	g := &modelContext{indexOf: map[limitKey]int{}, tracked: map[*allocationHistory]int{}}
	for p := range limits {
		if trees[p.tree] {
			g.limitKeys = append(g.limitKeys, p)
		}
	}
	slices.SortFunc(g.limitKeys, func(a, b limitKey) int {
		return strings.Compare(a.tree+":"+a.node+" "+a.resource, b.tree+":"+b.node+" "+b.resource)
	})
	for i, p := range g.limitKeys {
		g.indexOf[p] = i
	}
	return g
}

func (g *modelContext) porcupineModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any {
			unlimited := slices.Repeat([]int64{history.Unlimited}, len(g.limitKeys))
			return []any{modelState{used: make([]int64, len(g.limitKeys)), limits: unlimited}}
		},
		Step: func(state, input, _ any) []any {
			from, _ := state.(modelState)
			s, _ := input.(*modelStep)
			return g.nextStates(from, s)
		},
		Equal:             equalModelStates,
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
	return m.ToModel()
}

func equalModelStates(a, b any) bool {
	x, _ := a.(modelState)
	y, _ := b.(modelState)
	return x.key == y.key && x.chainedSteps == y.chainedSteps && x.fence == y.fence && x.doubtBits == y.doubtBits &&
		slices.Equal(x.used, y.used) && slices.Equal(x.limits, y.limits) && slices.Equal(x.held, y.held)
}

func (g *modelContext) nextStates(from modelState, s *modelStep) []any {
	if from.key > s.maxKey || from.chainedSteps < s.minPredecessors || from.chainedSteps > s.maxPredecessors {
		return nil
	}
	if s.hasKnownIndex() {
		from.chainedSteps++
	}
	next := from
	next.key = max(from.key, s.minKey)
	var follow []any
	if g.applyStep(&next, s) {
		follow = append(follow, next)
	}
	if s.optional || s.kind == opEnd && (s.doubtBit&^from.doubtBits != 0 || s.onlyIfHeld && from.versionOf(s) < 0) {
		follow = append(follow, from)
	}
	return follow
}

// applyStep changes a copy of a state. It returns false if the step is impossible there.
func (g *modelContext) applyStep(to *modelState, s *modelStep) bool {
	switch s.kind {
	case opGrant:
		if s.fence > 0 && s.fence <= to.fence || !s.isChoice && len(g.exceededLimits(*to, s)) > 0 {
			return false
		}
		to.fence, to.doubtBits = max(to.fence, s.fence), to.doubtBits|s.doubtBit
		if s.isChoice {
			return g.grantChoice(to, s)
		}
		to.used = g.addClaims(to.used, s.claims, 1)
		to.setVersion(s.tracked, 0)
	case opEnd:
		if s.doubtBit&^to.doubtBits != 0 || s.tracked > 0 && to.versionOf(s) < 0 {
			return false
		}
		to.doubtBits &^= s.doubtBit
		g.endHolding(to, s)
	case opChange:
		return g.applyChange(to, s)
	case opDeny, opDenyChange:
		return g.isDenied(*to, s)
	case opRead:
		return g.matchesUsage(*to, s.usage)
	case opSetLimits:
		to.limits = slices.Clone(to.limits)
		for _, l := range s.limits {
			if i, known := g.indexOf[limitKey{l.Tree, l.Node, l.Resource}]; known {
				to.limits[i] = l.Amount
			}
		}
	}
	return true
}

func (g *modelContext) addClaims(used []int64, claims []history.Claim, sign int64) []int64 {
	used = slices.Clone(used)
	for i, p := range g.limitKeys {
		used[i] += sign * amountAt(claims, p)
	}
	return used
}

func (g *modelContext) exceededLimits(state modelState, s *modelStep) []int {
	var all []int
	for i, p := range g.limitKeys {
		if state.limits[i] == history.Unlimited {
			continue
		}
		if more := amountAt(s.claims, p) - g.amountReplaced(state, s, i); more > 0 && state.used[i]+more > state.limits[i] {
			all = append(all, i)
		}
	}
	return all
}

// hasReasons reports whether a denial names exactly the exceeded limits, with what was used there. The denial of a
// change names no other limits beside holds.
func (g *modelContext) hasReasons(state modelState, s *modelStep, why []int) bool {
	isOther := func(i int) bool { return g.limitKeys[i].resource != history.OnHold }
	if onlyHolds := slices.DeleteFunc(slices.Clone(why), isOther); s.kind == opDenyChange && len(onlyHolds) > 0 {
		why = onlyHolds
	}
	if len(why) != len(s.reasons) {
		return false
	}
	for _, x := range s.reasons {
		i, known := g.indexOf[violatedLimit(x)]
		if !known || !slices.Contains(why, i) || isOther(i) && (x.Limit != state.limits[i] || x.Used != state.used[i]) {
			return false
		}
	}
	return true
}

func (g *modelContext) matchesUsage(state modelState, usage []history.Usage) bool {
	for _, u := range usage {
		i, known := g.indexOf[limitKey{u.Tree, u.Node, u.Resource}]
		if known && (u.Used != state.used[i] || u.Limit != state.limits[i]) {
			return false
		}
	}
	return true
}

// String describes the step for pictures.
func (s *modelStep) String() string {
	var b strings.Builder
	switch s.kind {
	case opGrant:
		fmt.Fprintf(&b, "grant %s fence %d", s.id, s.fence)
	case opEnd:
		fmt.Fprintf(&b, "end %s", s.id)
	case opDeny:
		fmt.Fprintf(&b, "deny %s because %v", s.id, s.reasons)
	case opChange:
		fmt.Fprintf(&b, "change %s to version %d:", s.id, s.version)
	case opDenyChange:
		fmt.Fprintf(&b, "deny the change of %s because %v", s.id, s.reasons)
	case opRead:
		used := map[string]int64{}
		for _, u := range s.usage {
			used[u.Tree+":"+u.Node] = u.Used
		}
		fmt.Fprintf(&b, "read")
		for _, at := range slices.Sorted(maps.Keys(used)) {
			fmt.Fprintf(&b, " %s=%d", at, used[at])
		}
	case opSetLimits:
		fmt.Fprintf(&b, "set %v", s.limits)
	}
	for _, claim := range s.claims {
		fmt.Fprintf(&b, " %s:%s%v", claim.Tree, claim.Node, claim.Amounts)
	}
	fmt.Fprintf(&b, " @%d-%d", s.minKey/2, s.maxKey/2)
	return b.String()
}
