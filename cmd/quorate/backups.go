package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/whole"
)

const (
	backupSuffix = ".backup"
	// backupTime is how names of backups say when they were taken, in UTC.
	backupTime = "20060102T150405Z"
)

// backups writes what this node has into a folder, again and again, and keeps the newest.
type backups struct {
	dir   string
	every time.Duration
	keep  int
	// prefix begins the names of this node's backups.
	prefix string
	node   backupSource
	log    hclog.Logger

	failures  prometheus.Counter
	succeeded prometheus.Gauge
	index     prometheus.Gauge
}

// backupSource is the node below.
type backupSource interface {
	Save(ctx context.Context, o cluster.ReadOptions, out io.Writer) (cluster.Saved, error)
	Standing() cluster.Standing
	Ready() error
}

// newBackups answers nil if none are wanted.
func newBackups(s settings, node backupSource, to prometheus.Registerer, log hclog.Logger) (*backups, error) {
	if s.BackupDir == "" {
		return nil, nil //nolint:nilnil // none are wanted, which is no fault
	}
	b := &backups{
		dir: s.BackupDir, every: s.BackupEvery, keep: s.BackupKeep, prefix: "quorate-" + s.ClusterName + "-" + s.ID + "-", node: node, log: log,
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_backup_failures_total", Help: "How often a periodic backup of this node failed.",
		}),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quorate_backup_last_success_timestamp_seconds", Help: "When the last periodic backup of this node succeeded, or had nothing new to save.",
		}),
		index: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quorate_backup_last_index", Help: "The log index of the last periodic backup of this node.",
		}),
	}
	for _, c := range []prometheus.Collector{b.failures, b.succeeded, b.index} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of backups: %w", err)
		}
	}
	return b, nil
}

// run goes on until ctx ends; at once if no backups are wanted. The first backup is taken when the node has caught up for the first time.
func (b *backups) run(ctx context.Context) {
	if b == nil {
		return
	}
	for b.node.Ready() != nil {
		if !waitFor(ctx, min(time.Second, b.every)) {
			return
		}
	}
	for {
		if err := b.once(ctx); err != nil && ctx.Err() == nil {
			b.failures.Inc()
			b.log.Error("a periodic backup failed, and will be tried again", "folder", b.dir, "in", b.every, "error", err)
		}
		if !waitFor(ctx, b.every) {
			return
		}
	}
}

func waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once writes one backup, unless there is nothing new since the last, and removes the oldest.
func (b *backups) once(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := b.sweep(); err != nil {
		return err
	}
	known, err := b.list()
	if err != nil {
		return err
	}
	applied := b.node.Standing().AppliedIndex
	if len(known) == 0 || known[len(known)-1].index != indexText(applied) {
		if applied, err = b.save(ctx); err != nil {
			return err
		}
	}
	b.succeeded.SetToCurrentTime()
	b.index.Set(float64(applied))
	return b.trim()
}

// save writes a backup of what this node has, under a name that says what it is.
func (b *backups) save(ctx context.Context) (uint64, error) {
	now := time.Now().UTC()
	// The index is known when the file is there: it is written under another name first.
	draft := filepath.Join(b.dir, "."+b.prefix+"draft")
	var saved cluster.Saved
	err := whole.Write(draft, func(file io.Writer) error {
		var err error
		saved, err = b.node.Save(ctx, cluster.ReadOptions{Stale: true}, file)
		return err
	})
	if err != nil {
		return 0, err
	}
	path := filepath.Join(b.dir, b.prefix+indexText(saved.Index)+"-"+now.Format(backupTime)+backupSuffix)
	if err := os.Rename(draft, path); err != nil {
		return 0, err
	}
	b.log.Info("saved a backup", "file", path, "index", saved.Index, "bytes", saved.Size)
	return saved.Index, whole.SyncFolder(b.dir)
}

// indexText sorts as the number does.
func indexText(index uint64) string { return fmt.Sprintf("%020d", index) }

// sweep removes what an earlier run could not finish.
func (b *backups) sweep() error {
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+b.prefix) || strings.HasPrefix(e.Name(), ".."+b.prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(b.dir, e.Name())))
		}
	}
	return err
}

// savedBackup is a file as its name tells.
type savedBackup struct{ name, index, at string }

// list are this node's backups, oldest first. Indexes begin anew in a new cluster, so time goes before them.
func (b *backups) list() ([]savedBackup, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var found []savedBackup
	for _, e := range entries {
		rest, own := strings.CutPrefix(e.Name(), b.prefix)
		rest, whole := strings.CutSuffix(rest, backupSuffix)
		index, at, both := strings.Cut(rest, "-")
		if _, err := time.Parse(backupTime, at); own && whole && both && err == nil && len(index) == len(indexText(0)) {
			found = append(found, savedBackup{e.Name(), index, at})
		}
	}
	slices.SortFunc(found, func(a, b savedBackup) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index)) })
	return found, nil
}

// trim removes the oldest.
func (b *backups) trim() error {
	known, err := b.list()
	if err != nil {
		return err
	}
	for _, old := range known[:max(0, len(known)-b.keep)] {
		if err := os.Remove(filepath.Join(b.dir, old.name)); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
	}
	return nil
}
