package server

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// holdsAtOnce is how many events of allocations are read at once.
	holdsAtOnce = 500
	// holdsRetry is the pause before the log is asked again, holdsPause that while the file is slow.
	holdsRetry = time.Second
	holdsPause = 20 * time.Millisecond
)

type feedNode interface {
	Read(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error)
	ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error)
}

// holdRecorder records in the audit file what this server applies of allocations. It continues where the file ends, or,
// in a file without such a record, as far back as the log goes.
type holdRecorder struct {
	node feedNode
	note func(audit.Record)
	// isBusy is true while no more records should be noted: the feed keeps them meanwhile.
	isBusy func() bool
	log    hclog.Logger
	// position is behind the last event that was recorded.
	position cluster.Position
}

func (h *holdRecorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.begin(ctx)
		if err == nil {
			err = h.follow(ctx)
		}
		if cluster.ReasonOf(err) == cluster.Forgotten {
			h.skip(ctx)
			continue
		}
		pause(ctx, holdsRetry)
	}
}

// begin finds out whether the log goes as far as the position: that of a cluster that was made anew does not.
func (h *holdRecorder) begin(ctx context.Context) error {
	info, err := h.node.Read(ctx, cluster.ReadOptions{}, func(ledger.Reader) {})
	if err == nil && h.position.Index > info.Index {
		h.position = cluster.Position{}
	}
	return err
}

// skip goes to the end of the log, because the events before are forgotten.
func (h *holdRecorder) skip(ctx context.Context) {
	if h.position != (cluster.Position{}) {
		h.log.Warn("the audit file lacks records of allocations: this server got a snapshot instead of log entries, or was " +
			"too slow; other members may have them")
		h.note(audit.Record{
			Kind: audit.Loss, Action: "loss", Outcome: audit.Failed,
			Detail: "records of allocations: this server got a snapshot instead of log entries, or was too slow",
		})
	}
	info, err := h.node.Read(ctx, cluster.ReadOptions{Stale: true}, func(ledger.Reader) {})
	if err != nil {
		pause(ctx, holdsRetry)
		return
	}
	h.position = cluster.PositionAfter(info.Index)
}

// follow records until an error.
func (h *holdRecorder) follow(ctx context.Context) error {
	for {
		for h.isBusy() && ctx.Err() == nil {
			pause(ctx, holdsPause)
		}
		page, err := h.node.ReadFeed(h.position, holdsAtOnce)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if e.Allocation == nil {
				continue
			}
			h.note(cluster.AuditHold(e))
		}
		if h.position = page.Next; page.Behind > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-page.Changed:
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
