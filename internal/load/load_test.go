package load

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// TestMain replaces the precise sleep, which the clock of synctest does not know.
func TestMain(m *testing.M) {
	sleepShort = time.Sleep
	os.Exit(m.Run())
}

func newGenerator(t testing.TB, config Config) *Generator {
	t.Helper()
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func operationOf(t testing.TB, r *Result, kind string) Operation {
	t.Helper()
	o, found := r.Operation(kind)
	if !found {
		t.Fatalf("nothing was measured of %s: %+v", kind, r)
	}
	return o
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }

// stalledFor is a system that takes a millisecond, except that nothing ends between 3 s and 4 s of its life.
func stalledFor(began time.Time) Work {
	from, until := began.Add(3*time.Second), began.Add(4*time.Second)
	return func(_ context.Context, it *Iteration) error {
		return it.Measure("call", 1, func() error {
			time.Sleep(time.Millisecond)
			if now := time.Now(); !now.Before(from) && now.Before(until) {
				time.Sleep(time.Until(until))
			}
			return nil
		})
	}
}

// TestOpenLoopShowsAStall runs the same system in both loops: the open loop has the tenth of the
// calls that were due during the stall in its percentiles, and the closed loop has it in its maximum only.
func TestOpenLoopShowsAStall(t *testing.T) {
	for _, test := range []struct {
		name                     string
		rate                     float64
		count                    int64
		p50, p90, p99, p999, max float64
	}{
		{name: "closed", count: 9*4000 + 4, p50: 1, p90: 1, p99: 1, p999: 1, max: 1000},
		// With 1,000 calls a second for ten seconds, a tenth wait for the end of the stall, the first of them longest.
		// The four callers then need 250 ms for the thousand calls that became due.
		{name: "open", rate: 1000, count: 10_000, p50: 1, p90: 251, p99: 925, p999: 993, max: 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGenerator(t, Config{Callers: 4, Rate: test.rate, Duration: 10 * time.Second})
				r := g.Run(t.Context(), stalledFor(time.Now()))
				call := operationOf(t, r, "call")
				if l := call.Latency; math.Abs(float64(call.Count-test.count)) > 8 || !near(l.P50Ms, test.p50) ||
					!near(l.P90Ms, test.p90) || !near(l.MaxMs, test.max) ||
					math.Abs(l.P99Ms-test.p99) > 0.05*test.p99 || math.Abs(l.P999Ms-test.p999) > 0.01*test.p999 {
					t.Errorf("%d calls: %+v, want %+v", call.Count, l, test)
				}
				if missed := r.Iterations.Missed; missed != 0 || r.Stopped != StoppedByDuration || r.Errors() != 0 {
					t.Errorf("%d missed, stopped by %s, %d errors", missed, r.Stopped, r.Errors())
				}
			})
		})
	}
}

// TestOverload checks that an open loop that asks for more than the system can do says so.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, Config{Callers: 2, Rate: 1000, Warmup: time.Second, Duration: 4 * time.Second})
		r := g.Run(t.Context(), func(_ context.Context, it *Iteration) error {
			return it.Measure("call", 1, func() error { time.Sleep(10 * time.Millisecond); return nil })
		})
		// Two callers do 200 a second: 1,000 of the 5,000 that are due in five seconds, all of them of the first second.
		if n := r.Iterations; n.Warmup != 1000 || n.Scheduled != 4000 || n.Missed != 4000 || n.Completed != 0 {
			t.Errorf("iterations %+v", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, Config{Callers: 2, Rate: 1000, Duration: 4 * time.Second})
		r := g.Run(t.Context(), func(_ context.Context, it *Iteration) error {
			return it.Measure("call", 1, func() error { time.Sleep(10 * time.Millisecond); return nil })
		})
		n := r.Iterations
		if n.Scheduled != 4000 || n.Completed != 800 || n.Missed != 3200 || n.Late < 790 {
			t.Errorf("iterations %+v", n)
		}
		if r.StartDelay == nil || !near(r.StartDelay.MaxMs, 3196) || r.StartDelay.P50Ms < 1500 {
			t.Errorf("start delay %+v", r.StartDelay)
		}
		// Latencies contain the delay.
		if call := operationOf(t, r, "call"); !near(call.Latency.MaxMs, r.StartDelay.MaxMs+10) {
			t.Errorf("call %+v, start delay %+v", call.Latency, r.StartDelay)
		}
	})
}

// TestKinds checks what an iteration of two operations measures in both loops.
func TestKinds(t *testing.T) {
	for name, rate := range map[string]float64{"closed": 0, "open": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGenerator(t, Config{Callers: 8, Rate: rate, Count: 500, IterationKind: "pair", IterationUnits: 64})
				var mu sync.Mutex
				numbers := map[int64]bool{}
				busy := map[int]bool{}
				r := g.Run(t.Context(), func(_ context.Context, it *Iteration) error {
					mu.Lock()
					if numbers[it.Number] || busy[it.Caller] {
						t.Errorf("iteration %d is not unique or caller %d is busy", it.Number, it.Caller)
					}
					numbers[it.Number], busy[it.Caller] = true, true
					mu.Unlock()
					defer func() {
						mu.Lock()
						busy[it.Caller] = false
						mu.Unlock()
					}()
					_ = it.Measure("allocate", 64, func() error { time.Sleep(2 * time.Millisecond); return nil })
					return it.Measure("release", 1, func() error { time.Sleep(3 * time.Millisecond); return nil })
				})
				allocate, release, pair := operationOf(t, r, "allocate"), operationOf(t, r, "release"), operationOf(t, r, "pair")
				if allocate.Count != 500 || allocate.Units != 500*64 || release.Units != 500 || pair.Count != 500 ||
					pair.Units != 500*64 {
					t.Errorf("counts: %+v %+v %+v", allocate, release, pair)
				}
				if !near(allocate.Latency.P99Ms, 2) || !near(release.Latency.P99Ms, 3) || !near(pair.Latency.P50Ms, 5) {
					t.Errorf("latencies: %+v %+v %+v", allocate.Latency, release.Latency, pair.Latency)
				}
				if len(numbers) != 500 || r.Stopped != StoppedByCount || r.Loop != name {
					t.Errorf("%d iterations, stopped by %s, loop %s", len(numbers), r.Stopped, r.Loop)
				}
				if !near(pair.PerSecond*r.ElapsedSeconds, 500) || !near(allocate.UnitsPerSecond, 64*allocate.PerSecond) {
					t.Errorf("rates: %+v in %g s", allocate, r.ElapsedSeconds)
				}
			})
		})
	}
}

// TestErrors checks that errors are counted by code, with the first as example, and not among latencies.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{Callers: 1, Count: 10, ErrorCode: func(err error) string {
			code, _, _ := strings.Cut(err.Error(), ":")
			return code
		}}
		r := newGenerator(t, config).Run(t.Context(), func(_ context.Context, it *Iteration) error {
			return it.Measure("call", 1, func() error {
				time.Sleep(time.Duration(it.Number+1) * time.Millisecond)
				switch it.Number {
				case 2, 5:
					return errors.New("denied: call " + strings.Repeat("x", int(it.Number)))
				case 4:
					return errors.New("unavailable: " + strings.Repeat("é", 1000))
				}
				return nil
			})
		})
		call := operationOf(t, r, "call")
		if call.Count != 7 || call.ErrorCount != 3 || r.Errors() != 3 || len(call.Errors) != 2 ||
			r.FirstError != "call: denied: call xx" {
			t.Fatalf("%+v, first error %q", call, r.FirstError)
		}
		if e := call.Errors[0]; e.Code != "denied" || e.Count != 2 || e.Example != "denied: call xx" || e.MaxMs != 6 {
			t.Errorf("%+v", e)
		}
		if e := call.Errors[1]; len(e.Example) > maxExample || !strings.HasSuffix(e.Example, "é…") {
			t.Errorf("%+v", e)
		}
		if n := r.Iterations; n.Completed != 7 || n.Failed != 3 || n.Scheduled != 10 {
			t.Errorf("%+v", n)
		}
	})
	many := newRecorder()
	for i := range 100 {
		many.recordFailure("call", strings.Repeat("c", i), 0, errors.New("text"))
	}
	if n := len(many.kinds["call"].errors); n != maxCodes+1 || many.kinds["call"].errors[CodeOther].Count != 100-maxCodes {
		t.Errorf("%d codes", n)
	}
}

// TestErrorLimit checks that a run which can only fail ends early, in the warm-up too.
func TestErrorLimit(t *testing.T) {
	for _, warmup := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			g := newGenerator(t, Config{Callers: 4, Warmup: warmup, Duration: time.Hour, ErrorLimit: 20})
			r := g.Run(t.Context(), func(_ context.Context, it *Iteration) error {
				return it.Measure("call", 1, func() error { time.Sleep(time.Second); return errors.New("refused") })
			})
			if n := r.Errors() + r.Iterations.WarmupErrors; n < 20 || n > 23 || r.Stopped != StoppedByErrors ||
				r.FirstError != "call: refused" {
				t.Errorf("warm-up %v: %d errors, %+v", warmup, n, r)
			}
		})
	}
}

// TestCancel checks that a cancelled run returns at once what it has measured.
func TestCancel(t *testing.T) {
	for name, rate := range map[string]float64{"closed": 0, "open": 10, "slow": 0.01} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				began := time.Now()
				r := newGenerator(t, Config{Callers: 3, Rate: rate, Count: 1000}).Run(ctx,
					func(ctx context.Context, it *Iteration) error {
						return it.Measure("call", 1, func() error {
							select {
							case <-time.After(time.Second):
								return nil
							case <-ctx.Done():
								return ctx.Err()
							}
						})
					})
				if took := time.Since(began); took != 2500*time.Millisecond || r.Stopped != StoppedByCancel {
					t.Errorf("took %v, stopped by %s", took, r.Stopped)
				}
				want := map[string]Iterations{
					"closed": {Scheduled: 9, Completed: 6, Interrupted: 3},
					"open":   {Scheduled: 25, Completed: 6, Interrupted: 3, Missed: 16, Late: 6},
					"slow":   {Scheduled: 1, Completed: 1},
				}[name]
				if r.Iterations != want || r.Errors() != 0 {
					t.Errorf("%+v, want %+v", r.Iterations, want)
				}
			})
		})
	}
}

// TestDrain checks that operations that do not end are errors and do not keep the run from ending.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, Config{Callers: 3, Duration: time.Second, Drain: 2 * time.Second})
		began := time.Now()
		r := g.Run(t.Context(), func(ctx context.Context, it *Iteration) error {
			return it.Measure("call", 1, func() error { <-ctx.Done(); return ctx.Err() })
		})
		call := operationOf(t, r, "call")
		if took := time.Since(began); took != 3*time.Second || call.ErrorCount != 3 ||
			call.Errors[0].Code != CodeUnfinished || r.Stopped != StoppedByDuration || r.Iterations.Failed != 3 {
			t.Errorf("took %v: %+v", took, r)
		}
	})
}

// TestHooks checks that hooks and Record see the measured part of the run.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var from, until time.Duration
		g := newGenerator(t, Config{
			Callers: 1, Warmup: 2 * time.Second, Duration: 3 * time.Second,
			OnMeasureStart: func() { from = time.Since(began) },
			OnMeasureEnd:   func() { until = time.Since(began) },
		})
		g.Record("lag", 1, time.Millisecond, nil)
		r := g.Run(t.Context(), func(context.Context, *Iteration) error {
			g.Record("lag", 1, time.Millisecond, nil)
			time.Sleep(300 * time.Millisecond)
			return nil
		})
		if from != 2*time.Second || until != 5100*time.Millisecond || !near(r.ElapsedSeconds, 3.1) {
			t.Errorf("from %v until %v, elapsed %g", from, until, r.ElapsedSeconds)
		}
		if lag := operationOf(t, r, "lag"); lag.Count != 10 || r.Iterations.Completed != 10 || r.Iterations.Warmup != 7 {
			t.Errorf("lag %d, iterations %+v", lag.Count, r.Iterations)
		}
	})
}

// TestElapsed checks that the rate of a slow open loop is what was asked for, although its last iteration ends early.
func TestElapsed(t *testing.T) {
	for rate, elapsed := range map[float64]float64{0: 1.1, 2: 1} {
		synctest.Test(t, func(t *testing.T) {
			g := newGenerator(t, Config{Callers: 4, Rate: rate, Warmup: time.Second, Duration: time.Second})
			r := g.Run(t.Context(), func(_ context.Context, it *Iteration) error {
				return it.Measure("call", 1, func() error { time.Sleep(150 * time.Millisecond); return nil })
			})
			if call := operationOf(t, r, "call"); !near(r.ElapsedSeconds, elapsed) || rate > 0 && call.PerSecond != rate {
				t.Errorf("rate %g: %g per second in %g s", rate, call.PerSecond, r.ElapsedSeconds)
			}
		})
	}
}

// TestCounts checks on random runs that each due iteration is counted exactly once, and each operation in histogram,
// series and count alike.
func TestCounts(t *testing.T) {
	verify.Check(t, func(rt *rapid.T) {
		config := Config{
			Callers:  rapid.IntRange(1, 40).Draw(rt, "callers"),
			Rate:     rapid.SampledFrom([]float64{0, 0, 3, 7.7, 100, 1234.5}).Draw(rt, "rate"),
			Warmup:   time.Duration(rapid.IntRange(0, 900).Draw(rt, "warm-up")) * time.Millisecond,
			Duration: time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "duration")) * time.Millisecond,
			Count:    int64(rapid.IntRange(0, 2000).Draw(rt, "count")),
		}
		cancelAfter := time.Duration(rapid.IntRange(1, 40_000).Draw(rt, "cancel")) * time.Millisecond
		mean := rapid.IntRange(1, 100_000).Draw(rt, "microseconds")
		synctest.Test(t, func(t *testing.T) { checkCounts(t, config, cancelAfter, int64(mean)) })
	})
}

func checkCounts(t *testing.T, config Config, cancelAfter time.Duration, mean int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cancelAfter)
	defer cancel()
	var mu sync.Mutex
	var measured, succeeded int64
	r := newGenerator(t, config).Run(ctx, func(_ context.Context, it *Iteration) error {
		failed := it.Number%7 == 3
		mu.Lock()
		if it.Measured() {
			if measured++; !failed {
				succeeded++
			}
		}
		mu.Unlock()
		return it.Measure("call", 3, func() error {
			time.Sleep(time.Duration(mean*(it.Number%5+1)) * time.Microsecond)
			if failed {
				return errors.New("failed")
			}
			return nil
		})
	})
	n := r.Iterations
	if started := n.Completed + n.Failed + n.Interrupted; started != measured || started+n.Missed != n.Scheduled ||
		n.Missed < 0 || n.Late > n.Scheduled {
		t.Errorf("%+v: %d iterations were measured, counted %+v", config, measured, n)
	}
	if config.Rate > 0 && config.Count == 0 && r.Stopped == StoppedByDuration {
		if due := config.Rate * config.Duration.Seconds(); math.Abs(float64(n.Scheduled)-due) > 1 {
			t.Errorf("%+v: %d scheduled, %g were due", config, n.Scheduled, due)
		}
	}
	if config.Count > 0 && n.Scheduled > config.Count {
		t.Errorf("%+v: %d scheduled", config, n.Scheduled)
	}
	call, _ := r.Operation("call")
	var inSeries int64
	for _, count := range call.Series.Counts {
		inSeries += count
	}
	if call.Count != succeeded || call.Units != 3*succeeded || inSeries != succeeded ||
		len(call.Series.Counts) > maxIntervals {
		t.Errorf("%+v: %d succeeded, %d in the series, %+v", config, succeeded, inSeries, call)
	}
	if call.ErrorCount+n.Interrupted < n.Failed || call.ErrorCount > n.Failed {
		t.Errorf("%+v: %d errors, %+v", config, call.ErrorCount, n)
	}
}

// TestSeriesKeepsSums checks that the width of intervals changes only the resolution.
func TestSeriesKeepsSums(t *testing.T) {
	verify.Check(t, func(rt *rapid.T) {
		var all, one, two series
		var end time.Duration
		for range rapid.IntRange(0, 300).Draw(rt, "operations") {
			since := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "since"))
			part := rapid.SampledFrom([]*series{&one, &two}).Draw(rt, "part")
			all.add(since, 2, since)
			part.add(since, 2, since)
			end = max(end, since)
		}
		one.merge(two)
		if one.width != all.width || len(one.points) != len(all.points) {
			rt.Fatalf("%d of %v, want %d of %v", len(one.points), one.width, len(all.points), all.width)
		}
		for i := range all.points {
			if one.points[i] != all.points[i] {
				rt.Errorf("interval %d: %+v, want %+v", i, one.points[i], all.points[i])
			}
		}
		if len(all.points) > maxIntervals || time.Duration(len(all.points))*all.width < end {
			rt.Errorf("%d intervals of %v until %v", len(all.points), all.width, end)
		}
	})
}

// TestResultInJSON checks the names of fields, which are stable, and that the histogram can be read again.
func TestResultInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGenerator(t, Config{Callers: 2, Rate: 100, Count: 100}).Run(t.Context(),
			func(_ context.Context, it *Iteration) error {
				return it.Measure("call", 1, func() error {
					time.Sleep(time.Duration(it.Number) * 100 * time.Microsecond)
					return nil
				})
			})
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(`loop callers intended_rate_per_second warmup_seconds elapsed_seconds
			generator_cpu_cores stopped iterations start_delay operations scheduled completed failed interrupted missed
			late warmup warmup_errors kind count per_second units units_per_second latency error_count series min_ms
			mean_ms p50_ms p90_ms p99_ms p99_9_ms max_ms hdr_histogram_ns interval_seconds counts`) {
			if !strings.Contains(string(text), `"`+name+`":`) {
				t.Errorf("field %s is missing in %s", name, text)
			}
		}
		var again Result
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		call := operationOf(t, &again, "call")
		histogram, err := call.Latency.DecodeHistogram()
		if err != nil || histogram.TotalCount() != 100 || !near(float64(histogram.ValueAtPercentile(50))/1e6, 4.9) ||
			!near(call.Latency.P50Ms, 4.9) || call.Latency.MaxMs != 9.9 || call.Latency.MinMs != 0 {
			t.Errorf("%v: %+v", err, call.Latency)
		}
	})
}

// TestConfigBounds checks each bound of a configuration.
func TestConfigBounds(t *testing.T) {
	good := Config{Callers: MaxCallers, Rate: MaxRate, Warmup: MaxDuration, Duration: MaxDuration}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"callers must":  func(c *Config) { c.Callers = 0 },
		"callers must ": func(c *Config) { c.Callers = MaxCallers + 1 },
		"rate must":     func(c *Config) { c.Rate = MaxRate + 1 },
		"rate must ":    func(c *Config) { c.Rate = math.NaN() },
		"warm-up must":  func(c *Config) { c.Warmup = MaxDuration + 1 },
		"duration must": func(c *Config) { c.Duration = -1 },
		"count must":    func(c *Config) { c.Count = -1 },
		"a run needs":   func(c *Config) { c.Duration = 0 },
		"drain and":     func(c *Config) { c.Drain = -1 },
		"drain and ":    func(c *Config) { c.ErrorLimit = -1 },
	} {
		bad := good
		change(&bad)
		if _, err := New(bad); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPreciseSleep runs the sleep that the other tests replace.
func TestPreciseSleep(t *testing.T) {
	began := time.Now()
	for time.Since(began) < 2*time.Millisecond {
		sleep(2*time.Millisecond - time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, at := range []time.Time{time.Now().Add(time.Hour), time.Now().Add(time.Millisecond), time.Now()} {
		if sleepUntil(ctx, at) {
			t.Errorf("the end of the context was not noticed")
		}
	}
}

// BenchmarkMeasure is the cost of the generator itself for an operation that does nothing.
func BenchmarkMeasure(b *testing.B) {
	g := newGenerator(b, Config{Callers: 2, Count: int64(b.N)})
	g.Run(b.Context(), func(_ context.Context, it *Iteration) error {
		return it.Measure("call", 1, func() error { return nil })
	})
}
