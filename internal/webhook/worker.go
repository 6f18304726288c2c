package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// eventsAtOnce is how many events are read at once.
	eventsAtOnce = 256
	// firstBackoff is the pause after the first failed attempt; each further one is twice as long, up to maxBackoff.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 5 * time.Minute
)

type worker struct {
	*Deliverer
	hook   quota.Webhook
	cancel context.CancelFunc
	ended  chan struct{}
	// at is where the feed is read.
	at quota.EventPosition

	mu sync.Mutex // protects the fields below
	progress
	// accepted is the progress that the last report told of and that the ledger has. sent is the last report.
	accepted, sent progress
	sentAt         time.Time
}

type progress struct {
	// cursor is behind the last event that was acknowledged or is not selected.
	cursor                   quota.EventPosition
	delivered, gaps, skipped uint64
	// failures counts failed attempts; failure is the reason of the last one, empty once one succeeds.
	failures uint64
	failure  string
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		page, err := w.config.Node.ReadFeed(cluster.Position{Index: w.at.Index, Number: w.at.Number}, eventsAtOnce)
		if cluster.ReasonOf(err) == cluster.Forgotten {
			w.deliverGap(ctx, positionOf(page.Next))
			continue
		}
		if err != nil {
			pause(ctx, firstBackoff)
			continue
		}
		for _, e := range page.Events {
			if !w.handleEvent(ctx, e) {
				return
			}
		}
		if w.at = positionOf(page.Next); page.Behind > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-page.Changed:
		}
	}
}

// handleEvent is false when ctx has ended first.
func (w *worker) handleEvent(ctx context.Context, e cluster.WatchEvent) bool {
	for w.selects(w.hook.WebhookSpec, e) {
		m, seen, err := w.eventMessage(ctx, &w.hook, e)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			pause(ctx, firstBackoff)
		case seen:
			return w.deliver(ctx, m)
		default:
			return w.skip(e)
		}
	}
	return w.skip(e)
}

func (w *worker) skip(e cluster.WatchEvent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cursor = positionOf(e.Position)
	w.skipped++
	return true
}

// deliverGap tells the receiver of events that are not remembered, and continues behind them.
func (w *worker) deliverGap(ctx context.Context, until quota.EventPosition) {
	w.config.Log.Warn("a webhook misses events: this server does not remember as far back as it has delivered",
		"webhook", w.hook.Name, "after", w.at.Index, "until", until.Index)
	if !w.hasOwner(ctx) {
		w.at = until
		return
	}
	if w.deliver(ctx, w.gapMessage(w.at, until)) {
		w.at = until
	}
}

// hasOwner is false if the webhook is of a user who was disabled or deleted.
func (w *worker) hasOwner(ctx context.Context) (known bool) {
	_, err := w.config.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		known = w.hook.Owner == ""
		if !known {
			_, refused := v.ReaderOfUser(w.hook.Owner)
			known = refused == nil
		}
	})
	return known || err != nil
}

// deliver repeats the post until the receiver acknowledges the message. It is false when ctx has ended first.
func (w *worker) deliver(ctx context.Context, m message) bool {
	longest := min(maxBackoff, time.Duration(w.hook.RetryFor)*time.Millisecond/4)
	for backoff := firstBackoff; ctx.Err() == nil; backoff *= 2 {
		err := w.post(ctx, w.hook.WebhookSpec, m)
		if err == nil {
			w.noteDelivery(m)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.noteFailure(err)
		pause(ctx, min(backoff, longest))
	}
	return false
}

func (w *worker) noteDelivery(m message) {
	w.metrics.count(w.hook.Name, "delivered")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cursor, w.failure = m.cursor, ""
	w.delivered++
	if m.isGap {
		w.gaps++
	}
}

func (w *worker) noteFailure(err error) {
	w.metrics.count(w.hook.Name, "failed")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures++
	w.failure = err.Error()
}

// reportFor is the next report about the worker, if one is needed: after a delivery, after a failed attempt, and at
// times when only events were skipped. What the ledger has of the last report says whether that arrived.
func (w *worker) reportFor(hook *quota.Webhook) (quota.WebhookReport, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if hook.Cursor == w.sent.cursor {
		w.accepted = w.sent
	}
	latest := w.progress
	hasNews := latest.delivered > w.accepted.delivered || latest.failures > w.sent.failures ||
		latest.skipped > w.accepted.skipped && time.Since(w.sentAt) > skipEvery
	if !hasNews {
		return quota.WebhookReport{}, false
	}
	w.sent, w.sentAt = latest, time.Now()
	return quota.WebhookReport{
		Name: hook.Name, Version: hook.Version, Cursor: latest.cursor, Delivered: latest.delivered - w.accepted.delivered,
		Gaps: latest.gaps - w.accepted.gaps, Error: latest.failure,
	}, true
}
