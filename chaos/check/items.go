package check

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// The sequential model of one item is a lock. A holder whose allocation is a lease may lose it at any time.

// lockOp is one operation on an item: a grant, or an end whose index is known.
type lockOp struct {
	allocation         string
	fence              uint64
	acquires           bool
	leased             bool
	minIndex, maxIndex uint64
}

// String describes the operation for pictures.
func (t *lockOp) String() string {
	what := "ends"
	if t.acquires {
		what = "acquires"
	}
	return fmt.Sprintf("%s (fence %d) %s @%d-%d", t.allocation, t.fence, what, t.minIndex, t.maxIndex)
}

// lockState is the state of an item in the model.
type lockState struct {
	index, fence uint64
	held, leased bool
}

func itemModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			from, _ := state.(lockState)
			t, _ := input.(*lockOp)
			return from.applyOp(t)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
}

func (l lockState) applyOp(t *lockOp) (bool, any) {
	if l.index > t.maxIndex {
		return false, l
	}
	next := lockState{index: max(l.index, t.minIndex), fence: max(l.fence, t.fence), held: t.acquires, leased: t.leased}
	if t.acquires {
		return t.fence > l.fence && (!l.held || l.leased), next
	}
	return l.held && l.fence == t.fence, next
}

func (s *timeline) checkItems(v *Verdict, o Options) {
	turns := map[string][]porcupine.Operation{}
	for _, l := range s.byFence {
		for _, claim := range l.heldClaims() {
			for _, item := range claim.Items {
				name := claim.Tree + ":" + item
				turns[name] = append(turns[name], l.lockOps()...)
			}
		}
	}
	for name, steps := range turns {
		v.Count("item operations", len(steps))
		m := itemModel()
		result, info := porcupine.CheckOperationsVerbose(m, steps, o.Timeout)
		if result == porcupine.Illegal {
			writePicture(v, o, name, m, info)
		}
		addSearchResult(v, result, name, steps, info)
	}
}

// lockOps has the end only if its index is known.
func (l *allocationHistory) lockOps() []porcupine.Operation {
	client := l.firstRequest().Client
	take := &lockOp{
		allocation: l.id, fence: l.fence, acquires: true, leased: l.endsByItself(), minIndex: l.minGrantIndex,
		maxIndex: l.maxGrantIndex,
	}
	all := []porcupine.Operation{{ClientId: client, Input: take, Call: l.askedAt, Return: l.grantedAt}}
	if l.endIndex > 0 {
		end := &lockOp{allocation: l.id, fence: l.fence, minIndex: l.endIndex, maxIndex: l.endIndex}
		all = append(all, porcupine.Operation{
			ClientId: client, Input: end, Call: l.askedAt,
			Return: min(l.goneAt, math.MaxInt64),
		})
	}
	return all
}
