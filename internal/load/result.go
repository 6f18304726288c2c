package load

import (
	"errors"
	"maps"
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Why a run ended.
const (
	StoppedByDuration = "duration"
	StoppedByCount    = "count"
	StoppedByCancel   = "cancelled"
	StoppedByErrors   = "errors"
)

// Result is what a run measured. Its JSON form is stable: fields may be added.
type Result struct {
	Loop    string `json:"loop"` // "closed" or "open"
	Callers int    `json:"callers"`
	// RatePerSecond is the intended rate of an open loop.
	RatePerSecond float64 `json:"intended_rate_per_second,omitempty"`
	WarmupSeconds float64 `json:"warmup_seconds"`
	// ElapsedSeconds is the time from the end of the warm-up until the run stopped and its last iteration had ended.
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	// GeneratorCPU is how many cores this process kept busy meanwhile.
	GeneratorCPU float64 `json:"generator_cpu_cores"`
	// Stopped says why the run ended: by its duration or count, by its context, or by too many errors.
	Stopped    string     `json:"stopped"`
	Iterations Iterations `json:"iterations"`
	// StartDelay is, in an open loop, the time from the intended to the actual start of iterations.
	StartDelay *Latency `json:"start_delay,omitempty"`
	// Operations are those measured, sorted by kind.
	Operations []Operation `json:"operations"`
	// FirstError is the first error of the run, with the warm-up.
	FirstError string `json:"first_error,omitempty"`
}

// Iterations counts the iterations of a run. Scheduled = Completed + Failed + Interrupted + Missed.
type Iterations struct {
	Scheduled   int64 `json:"scheduled"` // due after the warm-up and before the end
	Completed   int64 `json:"completed"`
	Failed      int64 `json:"failed"`
	Interrupted int64 `json:"interrupted"` // under way when the run was cancelled
	Missed      int64 `json:"missed"`      // open loop: due, but not begun before the end, because all callers were busy
	Late        int64 `json:"late"`        // open loop: begun more than 1 ms after the intended start
	Warmup      int64 `json:"warmup"`      // not measured
	// WarmupErrors counts failed operations of the warm-up.
	WarmupErrors int64 `json:"warmup_errors"`
}

// Operation is what was measured of one kind of operation. Count, units and latencies are of those that succeeded.
type Operation struct {
	Kind           string       `json:"kind"`
	Count          int64        `json:"count"`
	PerSecond      float64      `json:"per_second"`
	Units          int64        `json:"units"`
	UnitsPerSecond float64      `json:"units_per_second"`
	Latency        Latency      `json:"latency"`
	ErrorCount     int64        `json:"error_count"`
	Errors         []ErrorCount `json:"errors,omitempty"` // by code
	Series         Series       `json:"series"`
}

// Latency is a distribution of durations. Percentiles are precise to 0.1 %.
type Latency struct {
	MinMs  float64 `json:"min_ms"`
	MeanMs float64 `json:"mean_ms"`
	P50Ms  float64 `json:"p50_ms"`
	P90Ms  float64 `json:"p90_ms"`
	P99Ms  float64 `json:"p99_ms"`
	P999Ms float64 `json:"p99_9_ms"`
	MaxMs  float64 `json:"max_ms"`
	// HDR is the whole histogram of nanoseconds: HdrHistogram V2, compressed, in base64, as the tools of that project
	// read it. DecodeHistogram does.
	HDR string `json:"hdr_histogram_ns"`
}

// ErrorCount counts the errors of one code.
type ErrorCount struct {
	Code    string  `json:"code"`
	Count   int64   `json:"count"`
	MaxMs   float64 `json:"max_ms"`  // the longest that such an operation took
	Example string  `json:"example"` // the first
}

// Series is throughput over time: operations by the interval in which they ended, from the end of the warm-up.
type Series struct {
	IntervalSeconds float64   `json:"interval_seconds"`
	Counts          []int64   `json:"counts"`
	Units           []int64   `json:"units"`
	MaxMs           []float64 `json:"max_ms"` // the highest latency of each interval
}

// Operation returns what was measured of a kind, and false if there is nothing.
func (r *Result) Operation(kind string) (Operation, bool) {
	i := slices.IndexFunc(r.Operations, func(o Operation) bool { return o.Kind == kind })
	if i < 0 {
		return Operation{}, false
	}
	return r.Operations[i], true
}

// Errors counts failed operations of all kinds.
func (r *Result) Errors() int64 {
	var n int64
	for _, o := range r.Operations {
		n += o.ErrorCount
	}
	return n
}

// DecodeHistogram returns the histogram of a distribution, in nanoseconds.
func (l Latency) DecodeHistogram() (*hdr.Histogram, error) { return hdr.Decode([]byte(l.HDR)) }

func (g *Generator) buildResult(cpu time.Duration, cause error) *Result {
	all := newRecorder()
	for _, r := range g.recorders {
		all.merge(r)
	}
	elapsed := g.schedule.elapsed()
	result := &Result{
		Loop: "closed", Callers: g.config.Callers, WarmupSeconds: g.config.Warmup.Seconds(),
		ElapsedSeconds: elapsed.Seconds(), GeneratorCPU: perSecond(cpu.Seconds(), elapsed),
		Stopped: g.whyStopped(cause), Iterations: g.countIterations(), Operations: []Operation{},
	}
	if g.config.Rate > 0 {
		delay := all.startDelay.summary()
		result.Loop, result.RatePerSecond, result.StartDelay = "open", g.config.Rate, &delay
	}
	for _, kind := range slices.Sorted(maps.Keys(all.kinds)) {
		result.Operations = append(result.Operations, all.kinds[kind].summary(kind, elapsed))
	}
	if first := g.firstFailure.Load(); first != nil {
		result.FirstError = firstBytes(*first, maxExample)
	}
	return result
}

// whyStopped takes the cause with which the start of iterations ended, or nil.
func (g *Generator) whyStopped(cause error) string {
	switch {
	case errors.Is(cause, errErrorLimit):
		return StoppedByErrors
	case cause != nil && !g.drainExpired.Load():
		return StoppedByCancel
	case g.config.Count > 0 && g.schedule.counted.Load() >= g.config.Count:
		return StoppedByCount
	}
	return StoppedByDuration
}

func (g *Generator) countIterations() Iterations {
	scheduled := g.schedule.scheduled()
	return Iterations{
		Scheduled: scheduled, Missed: scheduled - g.schedule.started(),
		Completed: g.counts.completed.Load(), Failed: g.counts.failed.Load(),
		Interrupted: g.counts.interrupted.Load(), Late: g.counts.late.Load(),
		Warmup: g.counts.warmup.Load(), WarmupErrors: g.counts.warmupFailures.Load(),
	}
}

func (k *kindRecord) summary(kind string, elapsed time.Duration) Operation {
	o := Operation{
		Kind: kind, Count: k.latencies.histogram.TotalCount(), Units: k.units, Latency: k.latencies.summary(),
		Series: k.series.summary(),
	}
	o.PerSecond, o.UnitsPerSecond = perSecond(float64(o.Count), elapsed), perSecond(float64(o.Units), elapsed)
	for _, code := range slices.Sorted(maps.Keys(k.errors)) {
		o.Errors = append(o.Errors, *k.errors[code])
		o.ErrorCount += k.errors[code].Count
	}
	return o
}

func (l *latencies) summary() Latency {
	encoded, err := l.histogram.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err) // writing into memory
	}
	if l.histogram.TotalCount() == 0 {
		return Latency{HDR: string(encoded)}
	}
	at := func(percentile float64) float64 {
		// A bucket stands for its highest value, which may be above the maximum.
		return milliseconds(min(time.Duration(l.histogram.ValueAtPercentile(percentile)), l.longest))
	}
	return Latency{
		MinMs:  min(milliseconds(time.Duration(l.histogram.Min())), milliseconds(l.longest)),
		MeanMs: l.histogram.Mean() / float64(time.Millisecond),
		P50Ms:  at(50), P90Ms: at(90), P99Ms: at(99), P999Ms: at(99.9), MaxMs: milliseconds(l.longest),
		HDR: string(encoded),
	}
}

func (s series) summary() Series {
	summary := Series{IntervalSeconds: s.width.Seconds(), Counts: []int64{}, Units: []int64{}, MaxMs: []float64{}}
	for _, p := range s.points {
		summary.Counts = append(summary.Counts, p.count)
		summary.Units = append(summary.Units, p.units)
		summary.MaxMs = append(summary.MaxMs, milliseconds(p.longest))
	}
	return summary
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perSecond is 0 for a run that measured nothing.
func perSecond(amount float64, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return amount / elapsed.Seconds()
}
