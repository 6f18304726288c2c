package cli

import (
	"errors"
	"fmt"
	"testing"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "cern:atlas/physics": "cern:atlas/physics", "Zürich 東京 🙂": "Zürich 東京 🙂",
		`"quoted" \ as it is`:   `"quoted" \ as it is`,
		"\x1b[2J\x1b]0;owned\a": `\x1b[2J\x1b]0;owned\a`, "a\nb\tc\r": `a\nb\tc\r`, "\xff\xfe": `\xff\xfe`,
		"del\x7f":       `del\x7f`,
		"\u202egnp.exe": `\u202egnp.exe`, "a\u200bb": `a\u200bb`, "\u009b31m": `\u009b31m`, "\ufffd": "\ufffd",
		"a\u00a0b": `a\u00a0b`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	if got := printableText("a\n\tb\x1b"); got != "a\n\tb\\x1b" {
		t.Errorf("several lines are shown as %q", got)
	}
	got := fmt.Sprintf("%s %d %v %s", printableArgs(
		[]any{"\x1b", 7, errors.New("\a"), Place{"t\x1b", "n"}}, Printable)...)
	if want := fmt.Sprintf(`\x1b 7 \a %s`, Place{`t\x1b`, "n"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCSVIsPrintable: comma-separated values are shown on terminals, too.
func TestCSVIsPrintable(t *testing.T) {
	t.Parallel()
	page := &Page{}
	if err := page.Table([][]string{{"NAME", "WHY", "WHO"}, {"a\x1b[2J", "b\nc, d"}}); err != nil {
		t.Fatal(err)
	}
	text, err := page.csv()
	if want := "NAME,WHY,WHO\na\\x1b[2J,\"b\\nc, d\",\n"; err != nil || string(text) != want {
		t.Errorf("%v, %q, want %q", err, text, want)
	}
}
