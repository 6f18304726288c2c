package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// measuredRun is a run with one rate of the server and of the prototype in each round.
func measuredRun(rates ...[2]float64) *Run {
	r := &Run{Version: "test", CPUs: 2, Seconds: 1}
	for i, rate := range rates {
		r.Rounds = append(r.Rounds, &Round{Number: i + 1, Samples: []Sample{
			{System: quorateBolt, Case: "unary-64", Operations: 1, PerSecond: rate[0], CPUMicros: CPU{1, 30, 4}},
			{System: prototypeWAL, Case: "unary-64", Operations: 1, PerSecond: rate[1], CPUMicros: CPU{1, 20, 4}},
		}})
	}
	return r
}

func (r *Run) outcome(t *testing.T, part string) Outcome {
	t.Helper()
	for _, o := range r.Targets {
		if strings.Contains(o.What, part) {
			return o
		}
	}
	t.Fatalf("no target has %q in its name: %+v", part, r.Targets)
	return Outcome{}
}

func TestRatiosAreFormedWithinRounds(t *testing.T) {
	r := measuredRun([2]float64{100, 100}, [2]float64{90, 180}, [2]float64{300, 100})
	r.Finish()
	unary := r.outcome(t, "64 callers: over the prototype on raft-wal")
	if want := (Spread{1, 0.5, 3}); unary.Ratio != want || unary.Rounds != 3 || !unary.Met {
		t.Errorf("unary: %+v, want the ratio %v", unary, want)
	}
	cpu := r.outcome(t, "CPU of a unary pair on the leader")
	if want := (Spread{1.5, 1.5, 1.5}); cpu.Ratio != want || cpu.Met {
		t.Errorf("CPU: %+v, want the ratio %v, which is above the target", cpu, want)
	}
	if len(r.Targets) != 2 {
		t.Errorf("targets without measurements: %+v", r.Targets)
	}
}

func TestTheFasterLogStoreIsCompared(t *testing.T) {
	r := measuredRun([2]float64{100, 100})
	r.Rounds[0].Samples = append(r.Rounds[0].Samples, Sample{System: quorateWAL, Case: "unary-64", PerSecond: 200})
	r.Finish()
	if got := r.outcome(t, "64 callers: over the prototype on raft-wal").Ratio.Median; got != 2 {
		t.Errorf("the ratio is %v, want that of %s", got, quorateWAL)
	}
}

func TestFailedSamplesDoNotCount(t *testing.T) {
	r := measuredRun([2]float64{100, 100}, [2]float64{100, 100})
	r.Rounds[0].Samples[0].Failure = "broken"
	r.Finish()
	if got := r.outcome(t, "64 callers: over the prototype on raft-wal").Rounds; got != 1 {
		t.Errorf("%d rounds count, want 1", got)
	}
	failures := r.Failures()
	if len(failures) != 1 || !strings.Contains(failures[0], "round 1: unary-64 of quorate-bolt") {
		t.Errorf("failures are %q", failures)
	}
}

func TestNoisyRoundsAreReplaced(t *testing.T) {
	r := measuredRun([2]float64{1, 100}, [2]float64{1, 60}, [2]float64{1, 110})
	if noisy := r.JudgeNoise(3); noisy != 1 {
		t.Errorf("%d rounds are noisy, want 1", noisy)
	}
	if noise := strings.Join(r.Rounds[1].Noise, ";"); !strings.Contains(noise, "-40 %") {
		t.Errorf("the noise of round 2 is %q", noise)
	}
	r.Rounds = append(r.Rounds, &Round{Number: 4, Samples: []Sample{
		{System: prototypeWAL, Case: "unary-64", PerSecond: 95, OtherCPU: MaxOtherCPU},
	}})
	if noisy := r.JudgeNoise(3); noisy != 0 {
		t.Errorf("%d of the kept rounds are noisy, want none", noisy)
	}
	for i, want := range []bool{false, true, false, false} {
		if r.Rounds[i].Discarded != want {
			t.Errorf("round %d: discarded is %v, want %v", i+1, r.Rounds[i].Discarded, want)
		}
	}
}

func TestOtherProcessesAreNoise(t *testing.T) {
	for name, disturb := range map[string]func(*Sample){
		"other processes used 11 %": func(s *Sample) { s.OtherCPU = 0.11 },
		"the host gave 6 %":         func(s *Sample) { s.Stolen = 0.06 },
	} {
		r := measuredRun([2]float64{1, 1})
		for i := range r.Rounds[0].Samples {
			disturb(&r.Rounds[0].Samples[i])
		}
		if noisy := r.JudgeNoise(1); noisy != 1 || !strings.Contains(strings.Join(r.Rounds[0].Noise, ";"), name) {
			t.Errorf("%d noisy rounds, noise %q, want %q", noisy, r.Rounds[0].Noise, name)
		}
	}
}

func TestTables(t *testing.T) {
	r := measuredRun([2]float64{1234, 1000}, [2]float64{2000, 1000})
	r.Skipped = []Skipped{{etcd, "etcd is not installed: apt-get install etcd-server"}}
	r.JudgeNoise(2)
	r.Finish()
	for markdown, want := range map[bool][]string{
		true: {
			"| ratio | target | measured | met |\n|---|---|---|---|\n",
			"| unary pairs/s, 64 callers: over the prototype on raft-wal | ≥ 0.95 | 1.62 (1.23–2) | yes |\n",
			"| case | quorate-bolt | prototype-wal |\n",
			"| unary-64 | 1,617 (1,234–2,000) | 1,000 (1,000–1,000) |\n",
			"| unary-64 | 1 / 30 / 4 | 1 / 20 / 4 |\n",
			"Skipped etcd: etcd is not installed: apt-get install etcd-server.\n",
		},
		false: {"unary-64  1,617 (1,234–2,000)  1,000 (1,000–1,000)\n", "2 rounds of 1 s"},
	} {
		var b strings.Builder
		if err := r.Write(&b, markdown); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("markdown %v: %q is missing in\n%s", markdown, part, b.String())
			}
		}
	}
}

func TestAnEarlierServerHasItsOwnColumn(t *testing.T) {
	r := measuredRun([2]float64{200, 100})
	r.Rounds[0].Samples = append(r.Rounds[0].Samples,
		Sample{System: EarlierServer + "bolt", Case: "unary-64", PerSecond: 50})
	r.Finish()
	var b strings.Builder
	if err := r.Write(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"| ratio | target | before | measured | met |\n",
		"over the prototype on raft-wal | ≥ 0.95 | 0.5 (0.5–0.5) | 2 (2–2) | yes |\n",
		"| case | quorate-bolt | before-bolt | prototype-wal |\n",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, b.String())
		}
	}
}

func TestJSONHasEverything(t *testing.T) {
	r := measuredRun([2]float64{1, 1})
	r.Finish()
	file := filepath.Join(t.TempDir(), "run.json")
	if err := r.WriteJSON(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read Run
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Rounds) != 1 || read.Rounds[0].Samples[0] != r.Rounds[0].Samples[0] ||
		read.outcome(t, "unary pairs/s, 64").Ratio != r.outcome(t, "unary pairs/s, 64").Ratio {
		t.Errorf("read %s", text)
	}
}

func TestNumbers(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.5: "0.5", 1.254: "1.25", 18.75: "18.8", 99.96: "100", 1234567: "1,234,567",
	} {
		if got := shortNumber(f); got != want {
			t.Errorf("%v is written %q, want %q", f, got, want)
		}
	}
}
