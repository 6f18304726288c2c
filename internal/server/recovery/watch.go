package recovery

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/internal/access"
)

// watchPeriod is how often the access book is looked at; it is one atomic load.
const watchPeriod = 500 * time.Millisecond

// Watcher writes to the log of its server that access was recovered, and removes spent offers. What it has said is in
// the note of the folder, so that it says everything once, also what happened while the server was stopped.
type Watcher struct {
	Folder Folder
	// Book is the access book as the server has applied it.
	Book func() *access.Book
	Log  hclog.Logger
	// Note is that of the folder when the server was started.
	Note Note

	seen *access.Book
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	w.removeSpent() // the server may have ended before it did
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		w.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) look() {
	book := w.Book()
	if book == w.seen {
		return
	}
	if count := book.Recoveries(); count > w.Note.Recoveries {
		w.report(book, count)
	}
	if book.Mode() == access.Guarded && !w.Note.Guarded {
		w.Note.Closed, w.Note.Guarded = true, true // the next start knows it before it has caught up
		if err := w.Folder.WriteNote(w.Note); err != nil {
			w.Log.Error("noting that the cluster is guarded", "error", err)
		}
	}
	w.seen = book
}

func (w *Watcher) report(book *access.Book, count uint64) {
	last := book.LastRecovery()
	w.Log.Warn("ACCESS WAS RECOVERED on the machine of a member: an account got the role root",
		"member", last.Member, "account", last.Account, "index", last.Index,
		"time", time.UnixMilli(last.Wall).UTC().Format(time.RFC3339), "recoveries", count)
	w.Note.Recoveries = count
	if err := w.Folder.WriteNote(w.Note); err != nil { // it is said again after the next start
		w.Log.Error("noting that access was recovered; no other recovery can be prepared here until the next start",
			"error", err)
	}
	w.removeSpent()
}

func (w *Watcher) removeSpent() {
	if _, err := w.Folder.RemoveSpent(w.Note.Recoveries); err != nil {
		w.Log.Warn("removing a spent recovery", "error", err)
	}
}
