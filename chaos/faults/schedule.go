package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Step is a pause and then one fault, or two at a time.
type Step struct {
	Pause  time.Duration
	Faults []Fault
}

// Schedule draws steps from a seed: the same seed and kinds give the same steps.
type Schedule struct {
	random    *rand.Rand
	kinds     []Kind
	remaining []Kind // what was not drawn yet of this round
	early     []Kind // what must still happen at the beginning
	drawn     int
	// pause is the longest between two steps.
	pause time.Duration
	// mixed is the share of steps with two faults.
	mixed float64
}

// NewSchedule needs at least one kind.
func NewSchedule(seed uint64, kinds []Kind) (*Schedule, error) {
	if len(kinds) == 0 {
		return nil, errors.New("no fault of those that were asked for is possible here")
	}
	s := &Schedule{random: rand.New(rand.NewPCG(seed, 2)), pause: 3 * time.Second, mixed: 0.35}
	for _, k := range kinds {
		s.early = append(s.early, slices.Repeat([]Kind{k}, k.earlySteps)...)
		if k.earlySteps == 0 {
			s.kinds = append(s.kinds, k)
		}
	}
	if len(s.kinds) == 0 {
		s.kinds = kinds
	}
	return s, nil
}

// Next is the next step. What must happen at the beginning takes every second one until it is done. Each other kind comes
// once before any comes again, so that a short run sees many.
func (s *Schedule) Next() Step {
	step := Step{Pause: s.pause/3 + time.Duration(s.random.Int64N(int64(s.pause)))}
	first := s.drawKind()
	step.Faults = append(step.Faults, first.Draw(s.random))
	if second := s.kinds[s.random.IntN(len(s.kinds))]; s.random.Float64() < s.mixed && !first.Alone && !second.Alone {
		step.Faults = append(step.Faults, second.Draw(s.random))
	}
	return step
}

func (s *Schedule) drawKind() Kind {
	if s.drawn++; s.drawn%2 == 0 && len(s.early) > 0 {
		next := s.early[0]
		s.early = s.early[1:]
		return next
	}
	if len(s.remaining) == 0 {
		s.remaining = slices.Clone(s.kinds)
		s.random.Shuffle(len(s.remaining), func(i, j int) { s.remaining[i], s.remaining[j] = s.remaining[j], s.remaining[i] })
	}
	next := s.remaining[0]
	s.remaining = s.remaining[1:]
	return next
}

// String names the faults of a step.
func (s Step) String() string {
	var list []string
	for _, f := range s.Faults {
		list = append(list, fmt.Sprintf("%s for %v", f.Name, f.Hold.Round(time.Millisecond)))
	}
	return strings.Join(list, " with ")
}

// Counts are numbers of faults by the name of their kind.
type Counts map[string]int

// All is how many there were of all kinds.
func (c Counts) All() int {
	all := 0
	for _, n := range c {
		all += n
	}
	return all
}

// Add adds others.
func (c Counts) Add(others Counts) {
	for name, n := range others {
		c[name] += n
	}
}

// String names every kind with its number, by name.
func (c Counts) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(list, ", ")
}

// Drive carries out steps until ctx ends; what has begun by then is ended in order. It answers which faults there were.
// An error means that the harness could not do its work, not that a promise was broken.
func Drive(ctx context.Context, t *Target, s *Schedule) (Counts, error) {
	counts := Counts{}
	for {
		step := s.Next()
		if !Sleep(ctx, step.Pause) {
			return counts, nil
		}
		step.Faults = slices.DeleteFunc(step.Faults, t.skipsFault)
		happened, err := runStep(ctx, t, step)
		counts.Add(happened)
		if err != nil {
			return counts, fmt.Errorf("%s: %w", step, err)
		}
	}
}

// runStep lets the faults of a step overlap, and answers which of them happened.
func runStep(ctx context.Context, t *Target, step Step) (Counts, error) {
	happened, failed := make([]bool, len(step.Faults)), make([]error, len(step.Faults))
	var group sync.WaitGroup
	for i, f := range step.Faults {
		group.Go(func() { happened[i], failed[i] = runFault(ctx, t, f, time.Duration(i)*step.Pause/4) })
	}
	group.Wait()
	counts := Counts{}
	for i, f := range step.Faults {
		if happened[i] {
			counts[f.Name]++
		}
	}
	return counts, errors.Join(failed...)
}

// runFault answers whether the fault happened.
func runFault(ctx context.Context, t *Target, f Fault, after time.Duration) (bool, error) {
	if !Sleep(ctx, after) {
		return false, nil
	}
	whole, from := context.WithoutCancel(ctx), time.Now()
	switch err := f.Begin(whole, t); {
	case errors.Is(err, errNoFreeNode):
		return false, nil
	case err != nil:
		return false, err
	}
	defer t.addSpan(f.Name, from)
	Sleep(ctx, f.Hold)
	return true, f.End(whole, t)
}

// Heal ends whatever may still be wrong, and waits until the cluster is healthy.
func Heal(ctx context.Context, t *Target, patience time.Duration) error {
	defer t.addSpan("(healing)", time.Now())
	t.clearLinks()
	var failed []error
	for _, n := range t.Nodes {
		n.Disk.ClearFaults()
		failed = append(failed, n.Disk.FreeSpace(), n.Resume())
		if !n.Running() {
			t.Note(t.Index(n.ID), "started, for it had ended by itself")
			failed = append(failed, n.Start())
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	t.Note(-1, "all is healed")
	err := t.finishUpgrade(ctx)
	if err == nil {
		err = t.AwaitHealthy(ctx, patience)
	}
	if err == nil {
		t.Note(-1, "healthy again")
	}
	return err
}
