package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// keys are the names of keys in these tests; others are typed as they are.
var keys = map[string]tea.KeyPressMsg{
	"tab": {Code: tea.KeyTab}, "down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp}, "enter": {Code: tea.KeyEnter},
	"esc": {Code: tea.KeyEscape}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "backspace": {Code: tea.KeyBackspace},
}

// pressed is a model after some keys; false if the last one quits.
func pressed(m *model, names ...string) (goesOn bool) {
	goesOn = true
	for _, name := range names {
		key, known := keys[name]
		if !known {
			key = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		_, cmd := m.Update(key)
		goesOn = cmd == nil
	}
	return goesOn
}

// someSnapshot has two trees with nodes of any share, waiting requests and leases, and names that try to do harm.
func someSnapshot() snapshot {
	s := snapshot{cluster: "lab  n1 answers  revision 4  index 1234  leader n2  3 of 3 members well"}
	for i, percent := range []int{120, 100, 93, 50, 0, -1} {
		for _, tree := range []string{"cern", "ci"} {
			s.panes[nodesPane].rows = append(s.panes[nodesPane].rows, row{
				tree: tree, percent: percent,
				cells: []string{fmt.Sprintf("%s:group-%d", tree, i), "cores", fmt.Sprintf("%d of 100", max(percent, 7))},
			})
		}
	}
	for i := range 30 {
		s.panes[waitingPane].rows = append(s.panes[waitingPane].rows, row{cells: []string{
			fmt.Sprintf("job-%02d", i), "2026-11-27T20:00:00Z", "cern:group-1 cores=4",
			"cern:group-1  cores: limit 100, used 100, requested 4, missing 4",
		}})
	}
	s.panes[leasesPane].rows = []row{
		{cells: []string{cli.Printable("evil\x1b[2J\u202e"), "ends in 12s", "ann", "ci:group-2 aws-account:account-1"}},
		{cells: []string{"\u65e5\u672c\u8a9e", "ends in 3m", "bob", "ci:group-2 cores=4"}},
	}
	return s
}

// TestFrames draws screens of two sizes after keys, and compares them with a file.
func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		width, height int
		keys          string
	}{
		"80x24": {80, 24, ""}, "120x40": {120, 40, ""}, "40x12": {40, 12, "down up tab"}, "tree": {80, 24, "down enter down"},
		"waiting": {80, 24, "tab" + strings.Repeat(" down", 12)}, "filter": {80, 24, "/ g r o u p - 3 backspace 1 enter"},
		"help": {80, 24, "?"}, "small": {39, 24, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(false)
			m.Update(snapshotMsg(someSnapshot()))
			m.Update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
			pressed(m, strings.Fields(c.keys)...)
			got := m.draw() + "\n"
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			for _, line := range lines {
				if ansi.StringWidth(line) > c.width || strings.ContainsAny(line, "\x1b\u202e") {
					t.Errorf("the line %q does not fit, or does something", line)
				}
			}
			if len(lines) > c.height {
				t.Errorf("%d lines", len(lines))
			}
			path := filepath.Join("testdata", name+".golden")
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got), if that is right, rewrite it with -args -rewrite:\n%s", path, diff)
			}
		})
	}
}

// TestStates: what a screen says before a server has answered, when none does, and when a pane may not be seen.
func TestStates(t *testing.T) {
	m := newModel(false)
	says := func(what string) {
		t.Helper()
		if !strings.Contains(m.draw(), what) {
			t.Errorf("the screen does not say %q:\n%s", what, m.draw())
		}
	}
	says("waiting for a server")
	m.Update(linkMsg("connection refused"))
	says("NO ANSWER, trying again; what is shown may be old: connection refused")
	s := someSnapshot()
	s.panes[waitingPane] = pane{problem: "you lack the right holders.read"}
	m.Update(snapshotMsg(s))
	says("n1 answers")
	says("you lack the right holders.read")
}

// TestKeys: which keys end the screen, and that typed text is text.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys   string
		goesOn bool
	}{
		{"q", false}, {"ctrl+c", false}, {"/ q", true}, {"/ ctrl+c", false}, {"? q", true}, {"? q q", false}, {"enter", true},
	} {
		if got := pressed(newModel(false), strings.Fields(c.keys)...); got != c.goesOn {
			t.Errorf("after %q it goes on: %t", c.keys, got)
		}
	}
}

// TestColors: full and nearly full nodes are emphasised, and not at all without colours.
func TestColors(t *testing.T) {
	m := newModel(true)
	m.Update(snapshotMsg(someSnapshot()))
	for _, style := range []string{styleRed, styleYellow, styleReverse, styleBold} {
		if !strings.Contains(m.draw(), style) {
			t.Errorf("no line has the style %q", style)
		}
	}
	if m.hasColors = false; strings.Contains(m.draw(), "\x1b") {
		t.Error("without colours there are some")
	}
}
