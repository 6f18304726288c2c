package request

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// waitingRepeat is how often a line is written that has not changed, where lines stay.
	waitingRepeat = time.Minute
	// waitingTick is how often the line is written anew on a terminal.
	waitingTick = time.Second
	// waitingWidth is how long the line may be on a terminal, so that it stays one.
	waitingWidth = 110
)

// waitingLine tells a person where a request stands: on a terminal in one line that changes, elsewhere in a line for every
// change, and every minute.
type waitingLine struct {
	cli      *cli.Env
	terminal bool

	mu    sync.Mutex
	began time.Time
	shown string // what was said last, without the time
	at    time.Time
	done  chan struct{}
}

func NewWaitingLine(c *cli.Env) *waitingLine {
	w := &waitingLine{cli: c, terminal: cli.IsInteractive(c.ErrOut), began: time.Now(), done: make(chan struct{})}
	if w.terminal {
		go w.repaintLoop()
	}
	return w
}

// ReportProgress is told where the request stands.
func (w *waitingLine) ReportProgress(at client.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := progressText(w.cli.Units, at)
	if !w.terminal && text == w.shown && time.Since(w.at) < waitingRepeat {
		return
	}
	w.shown, w.at = text, time.Now()
	w.repaint()
}

// repaint must be called with mu held.
func (w *waitingLine) repaint() {
	text := fmt.Sprintf("waiting %v, %s", time.Since(w.began).Truncate(time.Second), w.shown)
	if !w.terminal {
		w.cli.Messagef("%s", text)
		return
	}
	fmt.Fprint(w.cli.ErrOut, "\r\x1b[K"+cli.ClipLine(cli.Printable(text), waitingWidth)) //nolint:errcheck // nobody is left to tell
}

func (w *waitingLine) repaintLoop() {
	ticks := time.NewTicker(waitingTick)
	defer ticks.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticks.C:
		}
		w.mu.Lock()
		if w.shown != "" {
			w.repaint()
		}
		w.mu.Unlock()
	}
}

// Close leaves a terminal as it was.
func (w *waitingLine) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.done)
	if w.terminal && w.shown != "" {
		fmt.Fprint(w.cli.ErrOut, "\r\x1b[K") //nolint:errcheck // nobody is left to tell
	}
	w.shown = ""
}

// progressText says the place and what blocks.
func progressText(u cli.Units, at client.Progress) string {
	var blocks []string
	for _, v := range at.Decision.GetViolations() {
		blocks = append(blocks, u.ViolationText(v))
	}
	stands := strings.TrimPrefix(cli.WaitingText(at.Allocation), "waits ")
	return strings.TrimSuffix(stands+": "+strings.Join(blocks, "; "), ": ")
}
