package request

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// waitingRepeat is the time after which an unchanged line is printed again, if the output is not a terminal.
	waitingRepeat = time.Minute
	// waitingTick is the time between two repaints on a terminal.
	waitingTick = time.Second
	// waitingWidth bounds the line on a terminal, because a wrapped line cannot be repainted.
	waitingWidth = 110
)

// WaitingLine shows the position of a waiting request: on a terminal in one line that is repainted, elsewhere in a
// new line for every change, and every minute.
type WaitingLine struct {
	env      *cli.Env
	terminal bool

	mu    sync.Mutex
	began time.Time
	shown string // the last text, without the time
	at    time.Time
	done  chan struct{}
}

// NewWaitingLine starts to show the position; Close ends it.
func NewWaitingLine(c *cli.Env) *WaitingLine {
	w := &WaitingLine{env: c, terminal: cli.IsInteractive(c.ErrOut), began: time.Now(), done: make(chan struct{})}
	if w.terminal {
		go w.repaintLoop()
	}
	return w
}

// ReportProgress shows a new position.
func (w *WaitingLine) ReportProgress(at client.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := progressText(w.env.Units, at)
	if !w.terminal && text == w.shown && time.Since(w.at) < waitingRepeat {
		return
	}
	w.shown, w.at = text, time.Now()
	w.repaint()
}

// repaint needs mu to be held.
func (w *WaitingLine) repaint() {
	text := fmt.Sprintf("waiting %v, %s", time.Since(w.began).Truncate(time.Second), w.shown)
	if !w.terminal {
		w.env.Messagef("%s", text)
		return
	}
	// a failure cannot be reported
	_, _ = fmt.Fprint(w.env.ErrOut, "\r\x1b[K"+cli.ClipLine(cli.Printable(text), waitingWidth))
}

func (w *WaitingLine) repaintLoop() {
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

// Close removes the line from a terminal.
func (w *WaitingLine) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.done)
	if w.terminal && w.shown != "" {
		_, _ = fmt.Fprint(w.env.ErrOut, "\r\x1b[K") // a failure cannot be reported
	}
	w.shown = ""
}

func progressText(u cli.Units, at client.Progress) string {
	var blocks []string
	for _, v := range at.Decision.GetViolations() {
		blocks = append(blocks, u.ViolationText(v))
	}
	waiting := cmp.Or(at.Allocation.GetWaiting(), at.Allocation.GetResize().GetWaiting())
	stands := strings.TrimPrefix(cli.QueueText(waiting), "waits ")
	return strings.TrimSuffix(stands+": "+strings.Join(blocks, "; "), ": ")
}
