package server

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
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/atomicfile"
)

const (
	backupSuffix = ".backup"
	// backupTime is how names of backups say when they were taken, in UTC.
	backupTime = "20060102T150405Z"
)

// backupSchedule saves the state of this node into a folder at intervals, and keeps the newest backups.
type backupSchedule struct {
	dir   string
	every time.Duration
	keep  int
	// prefix begins the names of this node's backups.
	prefix string
	node   backupNode
	log    hclog.Logger

	// last is when the last backup succeeded; nil before the first.
	last atomic.Pointer[time.Time]

	failures  prometheus.Counter
	succeeded prometheus.Gauge
	index     prometheus.Gauge
}

type backupNode interface {
	Save(ctx context.Context, o cluster.ReadOptions, out io.Writer) (cluster.BackupInfo, error)
	Status() cluster.NodeStatus
	Ready() error
}

// newBackupSchedule returns nil if the settings name no folder.
func newBackupSchedule(
	s Settings, node backupNode, to prometheus.Registerer, log hclog.Logger,
) (*backupSchedule, error) {
	if s.BackupDir == "" {
		return nil, nil //nolint:nilnil // backups are off
	}
	b := &backupSchedule{
		dir: s.BackupDir, every: s.BackupEvery, keep: s.BackupKeep, node: node, log: log,
		prefix: "quorate-" + s.ClusterName + "-" + s.ID + "-",
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_backup_failures_total", Help: "How often a periodic backup of this member failed.",
		}),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quorate_backup_last_success_timestamp_seconds",
			Help: "When the last periodic backup of this member succeeded, or had nothing new to save.",
		}),
		index: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quorate_backup_last_index", Help: "The log index of the last periodic backup of this member.",
		}),
	}
	for _, c := range []prometheus.Collector{b.failures, b.succeeded, b.index} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of backups: %w", err)
		}
	}
	return b, nil
}

// run saves backups until ctx ends; a nil schedule returns at once. The first backup waits until the node has caught
// up for the first time.
func (b *backupSchedule) run(ctx context.Context) {
	if b == nil {
		return
	}
	for b.node.Ready() != nil {
		if !sleepFor(ctx, min(time.Second, b.every)) {
			return
		}
	}
	for {
		if err := b.saveIfChanged(ctx); err != nil && ctx.Err() == nil {
			b.failures.Inc()
			b.log.Error("a periodic backup failed, and will be tried again", "folder", b.dir, "in",
				b.every, "error", err)
		}
		if !sleepFor(ctx, b.every) {
			return
		}
	}
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// saveIfChanged writes a backup, unless nothing was applied since the last one, and removes the oldest.
func (b *backupSchedule) saveIfChanged(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := b.removeDrafts(); err != nil {
		return err
	}
	known, err := b.listBackups()
	if err != nil {
		return err
	}
	applied := b.node.Status().AppliedIndex
	if len(known) == 0 || known[len(known)-1].index != indexName(applied) {
		if applied, err = b.writeBackup(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	b.last.Store(&now)
	b.succeeded.SetToCurrentTime()
	b.index.Set(float64(applied))
	return b.removeOldest()
}

// writeBackup returns the index. The name of the file has the index and the time.
func (b *backupSchedule) writeBackup(ctx context.Context) (uint64, error) {
	now := time.Now().UTC()
	// The index is known only after writing, so the file has another name until then.
	draft := filepath.Join(b.dir, "."+b.prefix+"draft")
	var saved cluster.BackupInfo
	err := atomicfile.Write(draft, func(file io.Writer) error {
		var err error
		saved, err = b.node.Save(ctx, cluster.ReadOptions{Stale: true}, file)
		return err
	})
	if err != nil {
		return 0, err
	}
	path := filepath.Join(b.dir, b.prefix+indexName(saved.Index)+"-"+now.Format(backupTime)+backupSuffix)
	if err := os.Rename(draft, path); err != nil {
		return 0, err
	}
	b.log.Info("saved a backup", "file", path, "index", saved.Index, "bytes", saved.Size)
	return saved.Index, atomicfile.SyncFolder(b.dir)
}

func indexName(index uint64) string { return fmt.Sprintf("%020d", index) }

// removeDrafts removes files that an earlier process could not finish.
func (b *backupSchedule) removeDrafts() error {
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+b.prefix) || strings.HasPrefix(e.Name(), ".."+b.prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(b.dir, e.Name())))
		}
	}
	return err
}

type savedBackup struct{ name, index, at string }

// listBackups are this node's backups, oldest first. They are ordered by time before index, because indexes start again
// from 1 in a new cluster.
func (b *backupSchedule) listBackups() ([]savedBackup, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var found []savedBackup
	for _, e := range entries {
		rest, own := strings.CutPrefix(e.Name(), b.prefix)
		rest, whole := strings.CutSuffix(rest, backupSuffix)
		index, at, both := strings.Cut(rest, "-")
		if _, err := time.Parse(backupTime, at); own && whole && both && err == nil && len(index) == len(indexName(0)) {
			found = append(found, savedBackup{e.Name(), index, at})
		}
	}
	slices.SortFunc(found, func(a, b savedBackup) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	return found, nil
}

func (b *backupSchedule) removeOldest() error {
	known, err := b.listBackups()
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
