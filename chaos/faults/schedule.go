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

// Step is a pause followed by one fault, or by two at a time.
type Step struct {
	Pause  time.Duration
	Faults []Fault
}

// Schedule draws steps from a seed: the same seed and kinds give the same steps.
type Schedule struct {
	random    *rand.Rand
	kinds     []Kind
	remaining []Kind // kinds that were not drawn in this round yet
	early     []Kind // kinds that must still happen at the beginning of the run
	drawn     int
	// pause is the longest pause between two steps.
	pause time.Duration
	// mixed is the share of steps with two faults.
	mixed float64
}

// NewSchedule returns an error if there are no kinds.
func NewSchedule(seed uint64, kinds []Kind) (*Schedule, error) {
	if len(kinds) == 0 {
		return nil, errors.New("none of the requested faults is possible on this machine")
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

// Next returns the next step. Every second step takes a fault that must happen at the beginning, until none is left.
// Each other kind happens once before any happens again, so that a short run sees many.
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
		s.random.Shuffle(len(s.remaining), func(i, j int) {
			s.remaining[i], s.remaining[j] = s.remaining[j], s.remaining[i]
		})
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

// All returns the number of faults of all kinds.
func (c Counts) All() int {
	all := 0
	for _, n := range c {
		all += n
	}
	return all
}

// Add adds the counts of another run.
func (c Counts) Add(others Counts) {
	for name, n := range others {
		c[name] += n
	}
}

// String returns every kind with its number, by name.
func (c Counts) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(list, ", ")
}

// Drive runs steps until ctx ends, then ends the faults that have begun. It returns how many faults there were. An
// error means that the harness failed, not that a promise was broken.
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

// runStep returns how many of the faults of a step happened. Their times overlap.
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

// runFault reports whether the fault happened.
func runFault(ctx context.Context, t *Target, f Fault, after time.Duration) (bool, error) {
	if !Sleep(ctx, after) {
		return false, nil
	}
	uncancelled, from := context.WithoutCancel(ctx), time.Now()
	switch err := f.Begin(uncancelled, t); {
	case errors.Is(err, errNoFreeNode):
		return false, nil
	case err != nil:
		return false, err
	}
	defer t.addSpan(f.Name, from)
	Sleep(ctx, f.Hold)
	return true, f.End(uncancelled, t)
}

// Heal ends all faults and waits until the cluster is healthy.
func Heal(ctx context.Context, t *Target, patience time.Duration) error {
	defer t.addSpan("(healing)", time.Now())
	t.clearLinks()
	var failed []error
	for _, n := range t.Nodes {
		n.Disk.ClearFaults()
		failed = append(failed, n.Disk.FreeSpace(), n.Resume())
		if !n.Running() {
			t.Note(t.Index(n.ID), "started: it had exited by itself")
			failed = append(failed, n.Start())
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	t.Note(-1, "all faults are healed")
	err := t.finishUpgrade(ctx)
	if err == nil {
		err = t.AwaitHealthy(ctx, patience)
	}
	if err == nil {
		t.Note(-1, "healthy again")
	}
	return err
}
