package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/client"
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
	cli      *cli
	terminal bool

	mu    sync.Mutex
	began time.Time
	said  string // what was said last, without the time
	at    time.Time
	over  chan struct{}
}

func newWaitingLine(c *cli) *waitingLine {
	w := &waitingLine{cli: c, terminal: isTerminal(c.talk), began: time.Now(), over: make(chan struct{})}
	if w.terminal {
		go w.tick()
	}
	return w
}

// report is told where the request stands.
func (w *waitingLine) report(at client.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.cli.units.progress(at)
	if !w.terminal && text == w.said && time.Since(w.at) < waitingRepeat {
		return
	}
	w.said, w.at = text, time.Now()
	w.write()
}

// write must be called with mu held.
func (w *waitingLine) write() {
	text := fmt.Sprintf("waiting %v, %s", time.Since(w.began).Truncate(time.Second), w.said)
	if !w.terminal {
		w.cli.say("%s", text)
		return
	}
	fmt.Fprint(w.cli.talk, "\r\x1b[K"+clip(printable(text), waitingWidth)) //nolint:errcheck // nobody is left to tell
}

func (w *waitingLine) tick() {
	ticks := time.NewTicker(waitingTick)
	defer ticks.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-ticks.C:
		}
		w.mu.Lock()
		if w.said != "" {
			w.write()
		}
		w.mu.Unlock()
	}
}

// end leaves a terminal as it was.
func (w *waitingLine) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.over)
	if w.terminal && w.said != "" {
		fmt.Fprint(w.cli.talk, "\r\x1b[K") //nolint:errcheck // nobody is left to tell
	}
	w.said = ""
}

// progress says the place and what blocks.
func (u units) progress(at client.Progress) string {
	var blocks []string
	for _, v := range at.Decision.GetViolations() {
		blocks = append(blocks, u.violation(v))
	}
	stands := strings.TrimPrefix(waitingText(at.Allocation), "waits ")
	return strings.TrimSuffix(stands+": "+strings.Join(blocks, "; "), ": ")
}
