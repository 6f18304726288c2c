package main

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/tools/bench/compare/systems"
)

// slowSystem completes one operation in each full second, and records its calls.
type slowSystem struct {
	systems.System

	windows []time.Duration
}

func (*slowSystem) Name() string                        { return "slow" }
func (*slowSystem) Leader(context.Context) (int, error) { return 0, nil }
func (*slowSystem) Processes() []*systems.Process       { return nil }
func (*slowSystem) CheckEmpty(context.Context) error    { return nil }

func (s *slowSystem) Measure(_ context.Context, _ systems.Case, w systems.Window) (systems.Work, error) {
	s.windows = append(s.windows, w.Duration)
	w.Begin()
	w.End()
	return systems.Work{Operations: int64(w.Duration / time.Second), Seconds: w.Duration.Seconds()}, nil
}

// TestAWindowThatIsTooShortGrows: a busy machine may complete nothing in a short window.
func TestAWindowThatIsTooShortGrows(t *testing.T) {
	t.Parallel()
	c, slow := &comparison{options: options{duration: 500 * time.Millisecond}}, &slowSystem{}
	sample := c.measureRepeatedly(t.Context(), slow, systems.Case{Name: "unary-1"})
	if sample.Failure != "" || sample.Operations != 4 || sample.Attempts != 2 || len(slow.windows) != 2 {
		t.Errorf("windows of %v give %+v", slow.windows, sample)
	}
}
