package ledger_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of the ledger into testdata instead of comparing them")

// TestScenarios plays the scripts of testdata, which tell what the ledger does in its own words. Each is played twice;
// the second time the ledger is frozen and loaded again after every command, which must make no difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data), false)
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(lines(string(data)), lines(got)); diff != "" {
				t.Errorf("the ledger answers otherwise (-file +ledger):\n%s", diff)
			}
			if diff := cmp.Diff(lines(got), lines(play(t, string(data), true))); diff != "" {
				t.Errorf(
					"a ledger that is frozen and loaded between commands answers otherwise (-without +with):\n%s", diff)
			}
		})
	}
}

func lines(s string) []string { return strings.Split(s, "\n") }

// play carries out a scenario and answers it with the ledger's answers in their places. A scenario is a list of
// sections, divided by empty lines: comments and commands, then ----, then what the commands answer. Indented lines
// belong to the command above them.
func play(t *testing.T, scenario string, freezeAlways bool) string {
	t.Helper()
	p := newPlayer(freezeAlways)
	var out strings.Builder
	for section := range strings.SplitSeq(strings.TrimSpace(scenario), "\n\n") {
		said, _, _ := strings.Cut(section+"\n", "----\n")
		out.WriteString(said)
		commands := commandsOf(said)
		if len(commands) > 0 {
			out.WriteString("----\n")
		}
		for _, c := range commands {
			answer, err := p.play(c)
			if err != nil {
				t.Fatalf("%s: %v", c[0], err)
			}
			out.WriteString(answer)
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func commandsOf(said string) [][]string {
	var commands [][]string
	for _, line := range lines(said) {
		switch last := len(commands) - 1; {
		case line == "" || line[0] == '#':
		case line[0] == ' ' && last >= 0:
			commands[last] = append(commands[last], strings.TrimSpace(line))
		default:
			commands = append(commands, []string{line})
		}
	}
	return commands
}
