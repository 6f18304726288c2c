package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/chaos/history"
)

// TestIndexChainKeepsResults: bounding steps by the index chain does not change the result of the search, neither on
// valid histories nor on falsified ones.
func TestIndexChainKeepsResults(t *testing.T) {
	found := map[porcupine.CheckResult]int{}
	for seed := range uint64(400) {
		p := newFakeHistory(rand.New(rand.NewPCG(seed, 0)))
		s := newTimeline(history.History{Ops: p.ops}, Finals{})
		trees := map[string]bool{"t": true}
		model := newModelContext(s.limits, trees)
		model.checkReasons = true
		plain, bound := stepsOf(t, s, model, trees), stepsOf(t, s, model, trees)
		for _, o := range plain {
			o.Input.(*modelStep).maxPredecessors = math.MaxInt //nolint:forcetypeassert // it is one
		}
		constrainByIndex(bound)
		want := porcupine.CheckOperationsTimeout(model.porcupineModel(), plain, time.Minute)
		if want == porcupine.Unknown {
			continue // the unbounded search takes too long
		}
		found[want]++
		if got := porcupine.CheckOperationsTimeout(model.porcupineModel(), bound, time.Minute); got != want {
			t.Errorf("seed %d: %v with the chain, %v without", seed, got, want)
		}
	}
	if t.Logf("%v", found); found[porcupine.Ok] < 100 || found[porcupine.Illegal] < 50 {
		t.Errorf("too few histories of one kind: %v", found)
	}
}

func stepsOf(t *testing.T, s *timeline, model *modelContext, trees map[string]bool) []porcupine.Operation {
	t.Helper()
	steps, why := s.modelSteps(model, trees)
	if why != "" {
		t.Fatal(why)
	}
	return steps
}

type fakeLedger struct {
	random *rand.Rand
	ops    []history.Op
	now    int64
	index  uint64
	fence  uint64
	used   int64
	held   []history.Op
}

const fakeLimit = 6

// newFakeHistory makes a short history. In every second one, one answer is falsified.
func newFakeHistory(r *rand.Rand) *fakeLedger {
	p := &fakeLedger{random: r, index: 1}
	limits := []history.Limit{{Tree: "t", Resource: "units", Amount: fakeLimit}}
	p.ops = append(p.ops, history.Op{
		Kind: history.Configure, ID: "setup", Index: 1, Limits: limits,
		Outcome: history.OK, Return: 1,
	})
	for i := range 14 {
		p.now += 4
		p.addCall(fmt.Sprint("x", i), i)
	}
	if r.IntN(2) == 0 {
		p.falsifyAnswer()
	}
	slices.SortFunc(p.ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	return p
}

// addCall adds one call that takes effect at p.now, was sent some time before that and answered some time after.
func (p *fakeLedger) addCall(id string, client int) {
	o := history.Op{
		ID: id, Client: client, Call: max(1, p.now-p.random.Int64N(12)),
		Return: p.now + p.random.Int64N(12), Outcome: history.OK,
	}
	switch dice := p.random.IntN(5); {
	case dice == 0:
		o.Kind, o.ID, o.Claims, o.Index, o.ServedBy = history.ReadUsage, "", []history.Claim{{Tree: "t"}}, p.index, "n1"
		o.Usage = []history.Usage{{Tree: "t", Resource: "units", Used: p.used, Limit: fakeLimit}}
	case dice == 1 && len(p.held) > 0:
		p.addRelease(&o)
	default:
		p.addAllocate(&o)
	}
	p.ops = append(p.ops, o)
}

func (p *fakeLedger) addAllocate(o *history.Op) {
	amount := 1 + p.random.Int64N(4)
	p.index++
	o.Kind, o.Claims = history.Allocate, []history.Claim{{Tree: "t", Amounts: map[string]int64{"units": amount}}}
	if p.used+amount > fakeLimit {
		o.Outcome, o.Reason = history.Refused, history.Denied
		o.Violations = []history.Violation{{
			Tree: "t", Resource: "units", Limit: fakeLimit, Used: p.used,
			Requested: amount, Missing: p.used + amount - fakeLimit,
		}}
		if p.random.IntN(2) == 0 {
			o.Index = p.index
		}
		return
	}
	p.used += amount
	p.fence++
	p.held = append(p.held, *o)
	if p.random.IntN(5) == 0 {
		o.Outcome = history.Unknown
		return
	}
	o.Index, o.Fence, o.State, o.Granted = p.index, p.fence, history.Held, o.Claims
	if p.random.IntN(4) == 0 {
		o.Repeated = true // an earlier answer was lost
	}
}

func (p *fakeLedger) addRelease(o *history.Op) {
	i := p.random.IntN(len(p.held))
	gone := p.held[i]
	p.held = slices.Delete(p.held, i, i+1)
	p.used -= gone.Claims[0].Amounts["units"]
	p.index++
	o.Kind, o.ID, o.Call = history.Release, gone.ID, max(o.Call, gone.Call)
	if p.random.IntN(4) == 0 {
		o.Outcome = history.Unknown
		return
	}
	o.Index, o.State = p.index, history.Released
}

func (p *fakeLedger) falsifyAnswer() {
	o := &p.ops[1+p.random.IntN(len(p.ops)-1)]
	switch {
	case len(o.Usage) > 0:
		o.Usage[0].Used++
	case len(o.Violations) > 0:
		o.Violations[0].Used--
	case o.Outcome == history.OK && o.Index > 2:
		o.Index -= 2
	}
}
