package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds beyond which a round is noisy.
const (
	// MaxDrift is how far the prototype may be from its median over all rounds. Nothing but the machine changes it.
	MaxDrift = 0.25
	// MaxOtherCPU bounds the share of all CPUs that other processes use, as the median over the round, and MaxStolen the
	// share that the host gives to other machines.
	MaxOtherCPU = 0.10
	MaxStolen   = 0.05
)

// referenceCases are those of the prototype by which drift is judged; the first that was measured counts.
var referenceCases = []string{"unary-64", "unary-16", "unary-1"} //nolint:gochecknoglobals // constant

// JudgeNoise says of each round why it is noisy, and keeps at most so many rounds: quiet ones before noisy ones, and
// then those with less CPU time of other processes. The others are discarded. It returns how many of the kept rounds
// are noisy.
func (r *Run) JudgeNoise(keep int) (noisy int) {
	system, caseName, reference := r.referenceRate()
	for _, round := range r.Rounds {
		round.Noise, round.Discarded = nil, false
		if s, found := round.sample(system, caseName); found {
			if drift := s.PerSecond/reference - 1; math.Abs(drift) > MaxDrift {
				round.addNoise("%s of %s is %+.0f %% from its median", caseName, system, 100*drift)
			}
		}
		if other := round.median(func(s Sample) float64 { return s.OtherCPU }); other > MaxOtherCPU {
			round.addNoise("other processes used %.0f %% of the CPUs", 100*other)
		}
		if stolen := round.median(func(s Sample) float64 { return s.Stolen }); stolen > MaxStolen {
			round.addNoise("the host gave %.0f %% of the CPUs to others", 100*stolen)
		}
	}
	ranked := slices.Clone(r.Rounds)
	slices.SortStableFunc(ranked, func(a, b *Round) int {
		return cmp.Or(
			cmp.Compare(len(a.Noise), len(b.Noise)),
			cmp.Compare(a.median(func(s Sample) float64 { return s.OtherCPU }),
				b.median(func(s Sample) float64 { return s.OtherCPU })))
	})
	for i, round := range ranked {
		switch {
		case i >= keep:
			round.Discarded = true
		case len(round.Noise) > 0:
			noisy++
		}
	}
	return noisy
}

// referenceRate returns the case by which drift is judged, and its median.
func (r *Run) referenceRate() (system, caseName string, median float64) {
	for _, system := range []string{prototypeWAL, prototypeBolt} {
		for _, caseName := range referenceCases {
			var rates []float64
			for _, round := range r.Rounds {
				if s, found := round.sample(system, caseName); found {
					rates = append(rates, s.PerSecond)
				}
			}
			if len(rates) > 0 {
				return system, caseName, spreadOf(rates).Median
			}
		}
	}
	return "", "", math.NaN()
}

func (r *Round) addNoise(format string, args ...any) {
	r.Noise = append(r.Noise, fmt.Sprintf(format, args...))
}

// median of a figure over all samples of the round.
func (r *Round) median(figure value) float64 {
	var values []float64
	for _, s := range r.Samples {
		if s.Failure == "" {
			values = append(values, figure(s))
		}
	}
	return spreadOf(values).Median
}
