package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/report"
)

func TestReport(t *testing.T) {
	h := history.History{}
	for i := range int64(50) {
		h.Ops = append(h.Ops, history.Op{
			Kind: history.Allocate, Outcome: history.OK, Call: i * 1e8,
			Return: i*1e8 + 1e6,
		})
	}
	h.Ops = append(h.Ops, history.Op{Kind: history.Release, Outcome: history.Unknown, Call: 1, Return: 3e9})
	run := report.Run{
		Seed: 17, Scenario: "kill <the> leader", History: h,
		Nodes: 3, Faults: "kill-leader 1", Again: "make chaos SEED=17",
		Events: []report.Event{
			{At: 2 * time.Second, What: "paused", Node: "n2"},
			{At: time.Second, What: "killed", Node: "n1"},
			{At: 4 * time.Second, What: "healed"},
		},
		Spans: []report.Span{
			{"pause-follower", 2 * time.Second, 4 * time.Second},
			{"kill-leader", time.Second, 3 * time.Second},
		},
		Verdicts: check.Verdicts{{
			Promise: "P1", Title: "never over", Counts: map[string]int{"grants": 3},
			Messages: []string{"7 of 5 are held"}, Violations: 1,
		}},
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := report.Write(dir, run); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, report.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 nodes, seed 17, 51 operations in 4.901s", "<code>make chaos SEED=17</code>", "kill-leader 1",
		"kill &lt;the&gt; leader", `class="broken"`, "7 of 5 are held", "3 grants",
		"pause-follower at 2s, for 2s", "n2 at 2s: paused", "cluster at 4s: healed", ">3s</text>",
		"<td>allocate</td><td class=\"n\">50</td>", "answers a second",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(string(text), "ZgotmplZ") {
		t.Error("the template refused to show something")
	}
}

func TestReportOfEmptyRun(t *testing.T) {
	if err := report.Write(t.TempDir(), report.Run{Scenario: "nothing"}); err != nil {
		t.Error(err)
	}
}
