package request

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func at(position int64) client.Progress {
	return client.Progress{Allocation: &quoratev1.Allocation{Waiting: &quoratev1.Waiting{Position: position}}}
}

// TestWaitingInLines: without a terminal, a line is written for each change and once per minute.
func TestWaitingInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talk bytes.Buffer
		w := NewWaitingLine(&cli.Env{ErrOut: &talk})
		for i := range 20 {
			w.ReportProgress(at(int64(3 - i/10)))
			time.Sleep(10 * time.Second)
		}
		w.Close()
		want := "waiting 0s, at position 3\nwaiting 1m0s, at position 3\nwaiting 1m40s, at position 2\nwaiting 2m40s, " +
			"at position 2\n"
		if talk.String() != want {
			t.Errorf("got:\n%s", talk.String())
		}
	})
}

// TestWaitingOnATerminal: on a terminal, one line is rewritten every second and erased at the end.
func TestWaitingOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talk bytes.Buffer
		w := &WaitingLine{env: &cli.Env{ErrOut: &talk}, terminal: true, began: time.Now(), done: make(chan struct{})}
		go w.repaintLoop()
		w.ReportProgress(at(3))
		time.Sleep(2500 * time.Millisecond)
		w.Close()
		const again = "\r\x1b[K"
		want := again + strings.Join([]string{
			"waiting 0s, at position 3", "waiting 1s, at position 3", "waiting 2s, at position 3", "",
		}, again)
		if talk.String() != want {
			t.Errorf("got %q", talk.String())
		}
	})
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "fünf!": "fünf!", "sechs!": "sech…"} {
		if got := cli.ClipLine(text, 5); got != want {
			t.Errorf("clip(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLasting(t *testing.T) {
	for ms, want := range map[int64]string{
		-5: "0s", 0: "0s", 1: "100ms", 950: "1s", 59_901: "1m", 60_000: "1m", 61_001: "1m2s", 3_599_001: "1h",
		86_340_001: "24h", 5_400_000: "1h30m", 172_800_000: "2d", 1 << 62: "106751d23h47m",
	} {
		if got := cli.RoundSpan(ms); got != want {
			t.Errorf("lasting(%d) = %q, want %q", ms, got, want)
		}
	}
}
