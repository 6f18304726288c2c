package ledger_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// managerFault is where the ledger answers otherwise than the quota manager, on purpose.
type managerFault struct {
	why string
	// calls whose answer is the opposite.
	opposite []int
	// lines of the recorded state that read otherwise after the call from and before the call until.
	from, until int
	lines       map[string]string
	// ends is the first call that is not played any more; 0 is none.
	ends int
}

var managerFaults = map[string]managerFault{
	"rename-chain": {
		why:  "renames compose: a stays where it was (defect 13)",
		from: 6, until: 99,
		lines: map[string]string{"T R [2] [a]": "T R [2] []", "T X2 [0] []": "T X2 [1] [a]"},
	},
	"walk-cache": {
		why:  "a node that claims belong to is not removed; testdata/borrowing_updates.txt goes on",
		ends: 10,
	},
	"lost-victim": {
		why:      "a refused request changes nothing: h keeps its place (defect 2)",
		opposite: []int{9}, // so that h can still be released
		from:     5, until: 9,
		lines: map[string]string{"T H [0] []": "T H [2] [h]", "T R [4] []": "T R [6] []"},
	},
	"maintenance": {
		why:      "all trees or none, also when forced: f is held nowhere; an unknown tree is refused (defects 4 and 7)",
		opposite: []int{8, 10, 11},
		from:     7, until: 99,
		lines: map[string]string{
			"TB B1 [1] [f]": "TB B1 [0] []", "TB RB [1] []": "TB RB [0] []",
			"TB B1 [2] [f h]": "TB B1 [1] [h]", "TB RB [2] []": "TB RB [1] []",
		},
	},
}

// TestQuotaManager plays what was recorded of the quota manager.
func TestQuotaManager(t *testing.T) {
	files, err := filepath.Glob("testdata/quotamanager/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var c managerCase
			if err := json.Unmarshal(read(t, file), &c); err != nil {
				t.Fatal(err)
			}
			playManager(t, c, answersOf(t, read(t, file+"l")), managerFaults[name])
		})
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func answersOf(t *testing.T, data []byte) []managerAnswer {
	t.Helper()
	var answers []managerAnswer
	state := map[string]json.RawMessage{}
	for line := range bytes.Lines(data) {
		a := managerAnswer{}
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		if a.State == nil {
			a.State = state
		}
		state = a.State
		if !a.Setup {
			answers = append(answers, a)
		}
	}
	return answers
}

func playManager(t *testing.T, c managerCase, answers []managerAnswer, fault managerFault) {
	t.Helper()
	m := newManager(t, c)
	if len(c.Ops) != len(answers) {
		t.Fatalf("%d calls but %d answers", len(c.Ops), len(answers))
	}
	unordered := cmp.Options{cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)}
	if fault.ends > 0 {
		c.Ops = c.Ops[:fault.ends]
	}
	for i, op := range c.Ops {
		want := answers[i]
		if slices.Contains(fault.opposite, i) {
			want.OK = !want.OK
		}
		ok, preempted := m.play(op)
		if ok != want.OK {
			t.Errorf("call %d, %s %s: answered %t, want %t (%s)", i, op.Do, op.ID, ok, want.OK, fault.why)
		}
		if diff := cmp.Diff(want.Preempted, preempted, unordered); diff != "" {
			t.Errorf("call %d, %s %s: preempted (-want +ledger):\n%s", i, op.Do, op.ID, diff)
		}
		lines := stateOf(t, want.State)
		for j, line := range lines {
			if ours, known := fault.lines[line]; known && i >= fault.from && i < fault.until {
				lines[j] = ours
			}
		}
		if diff := cmp.Diff(lines, m.state(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("call %d, %s %s: the trees stand otherwise (-want +ledger):\n%s", i, op.Do, op.ID, diff)
		}
	}
}
