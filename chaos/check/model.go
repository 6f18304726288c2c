package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/chaos/history"
)

// The sequential model of a group of trees: what is used at every node. Steps whose index is known are a chain, which leaves
// the search only those to place of which no answer told the index: see chain.

type deed int

const (
	grants deed = iota
	ends
	denies
	reads
	sets
)

// step is one operation of the model.
type step struct {
	deed   deed
	id     string
	claims []history.Claim
	// from and by bound its key in the order of the log, see key.
	from, by uint64
	// after and before bound how many steps of the chain are carried out before it.
	after, before int
	fence         uint64
	limits        []history.Limit
	usage         []history.Usage
	because       []history.Violation
	// bit is that of an allocation of which nobody knows whether it happened; 0 for all others. Its end does nothing unless
	// it did.
	bit uint64
	// maybe is true for a step that may as well do nothing.
	maybe bool
}

// chained tells whether the step happened for certain, and at which index.
func (s *step) chained() bool { return s.from == s.by && !s.maybe }

// key orders writes and reads by index: a read is of the state behind the entry of its index.
func key(index uint64, read bool) uint64 {
	k := 2 * index
	if read {
		k++
	}
	return k
}

// ledger is a state of the model. It is never changed.
type ledger struct {
	key, fence uint64
	// done counts the steps of the chain so far.
	done int
	// happened are the bits of doubtful allocations that are held.
	happened     uint64
	used, limits []int64
}

// ground is what all states of one group have in common.
type ground struct {
	places  []place
	at      map[place]int
	explain bool
}

func groundOf(limits settings, trees map[string]bool) *ground {
	g := &ground{at: map[place]int{}}
	for p := range limits {
		if trees[p.tree] {
			g.places = append(g.places, p)
		}
	}
	slices.SortFunc(g.places, func(a, b place) int {
		return strings.Compare(a.tree+":"+a.node+" "+a.resource, b.tree+":"+b.node+" "+b.resource)
	})
	for i, p := range g.places {
		g.at[p] = i
	}
	return g
}

// model is the one of porcupine.
func (g *ground) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any {
			unlimited := slices.Repeat([]int64{history.Unlimited}, len(g.places))
			return []any{ledger{used: make([]int64, len(g.places)), limits: unlimited}}
		},
		Step: func(state, input, _ any) []any {
			from, _ := state.(ledger)
			s, _ := input.(*step)
			return g.step(from, s)
		},
		Equal:             equalLedgers,
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
	return m.ToModel()
}

func equalLedgers(a, b any) bool {
	x, _ := a.(ledger)
	y, _ := b.(ledger)
	return x.key == y.key && x.done == y.done && x.fence == y.fence && x.happened == y.happened &&
		slices.Equal(x.used, y.used) && slices.Equal(x.limits, y.limits)
}

// step is the states that may follow.
func (g *ground) step(from ledger, s *step) []any {
	if from.key > s.by || from.done < s.after || from.done > s.before {
		return nil
	}
	if s.chained() {
		from.done++
	}
	next := from
	next.key = max(from.key, s.from)
	var follow []any
	if g.carryOut(&next, s) {
		follow = append(follow, next)
	}
	if s.maybe || s.deed == ends && s.bit&^from.happened != 0 {
		follow = append(follow, from)
	}
	return follow
}

// carryOut changes a copy of a state, or says that the step is not possible there.
func (g *ground) carryOut(to *ledger, s *step) bool {
	switch s.deed {
	case grants:
		if s.fence > 0 && s.fence <= to.fence || len(g.tooSmall(*to, s)) > 0 {
			return false
		}
		to.fence, to.happened = max(to.fence, s.fence), to.happened|s.bit
		to.used = g.add(to.used, s.claims, 1)
	case ends:
		if s.bit&^to.happened != 0 {
			return false
		}
		to.happened &^= s.bit
		to.used = g.add(to.used, s.claims, -1)
	case denies:
		why := g.tooSmall(*to, s)
		return len(why) > 0 && (!g.explain || g.explains(*to, s, why))
	case reads:
		return g.shows(*to, s.usage)
	case sets:
		to.limits = slices.Clone(to.limits)
		for _, l := range s.limits {
			if i, known := g.at[place{l.Tree, l.Node, l.Resource}]; known {
				to.limits[i] = l.Amount
			}
		}
	}
	return true
}

func (g *ground) add(used []int64, claims []history.Claim, sign int64) []int64 {
	used = slices.Clone(used)
	for i, p := range g.places {
		used[i] += sign * amountAt(claims, p)
	}
	return used
}

// tooSmall are the places whose limits stand in the way of a request.
func (g *ground) tooSmall(of ledger, s *step) []int {
	var all []int
	for i, p := range g.places {
		if of.limits[i] == history.Unlimited {
			continue
		}
		if more := amountAt(s.claims, p); more > 0 && of.used[i]+more > of.limits[i] {
			all = append(all, i)
		}
	}
	return all
}

// explains tells whether a denial names just the limits that stand in the way, with what was used there.
func (g *ground) explains(of ledger, s *step, why []int) bool {
	if len(why) != len(s.because) {
		return false
	}
	for _, x := range s.because {
		i, known := g.at[place{x.Tree, x.Node, x.Resource}]
		if !known || !slices.Contains(why, i) || x.Limit != of.limits[i] || x.Used != of.used[i] {
			return false
		}
	}
	return true
}

func (g *ground) shows(of ledger, usage []history.Usage) bool {
	for _, u := range usage {
		i, known := g.at[place{u.Tree, u.Node, u.Resource}]
		if known && (u.Used != of.used[i] || u.Limit != of.limits[i]) {
			return false
		}
	}
	return true
}

// String is a step for people who look at pictures.
func (s *step) String() string {
	var b strings.Builder
	switch s.deed {
	case grants:
		fmt.Fprintf(&b, "grant %s fence %d", s.id, s.fence)
	case ends:
		fmt.Fprintf(&b, "end %s", s.id)
	case denies:
		fmt.Fprintf(&b, "deny %s because %v", s.id, s.because)
	case reads:
		used := map[string]int64{}
		for _, u := range s.usage {
			used[u.Tree+":"+u.Node] = u.Used
		}
		fmt.Fprintf(&b, "read")
		for _, at := range slices.Sorted(maps.Keys(used)) {
			fmt.Fprintf(&b, " %s=%d", at, used[at])
		}
	case sets:
		fmt.Fprintf(&b, "set %v", s.limits)
	}
	for _, claim := range s.claims {
		fmt.Fprintf(&b, " %s:%s%v", claim.Tree, claim.Node, claim.Amounts)
	}
	fmt.Fprintf(&b, " @%d-%d", s.from/2, s.by/2)
	return b.String()
}
