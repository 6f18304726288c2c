package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// The kinds of read that bench measures.
const (
	readLinearizable = "linearizable"
	readStale        = "stale"
	readMinIndex     = "min-index"
)

var readKinds = []string{readLinearizable, readStale, readMinIndex}

func checkReadKinds(kinds []string) error {
	for _, kind := range kinds {
		if !slices.Contains(readKinds, kind) {
			return cli.Usagef("--reads %s: allowed are %s", kind, strings.Join(readKinds, ", "))
		}
	}
	return nil
}

// benchReads measures one kind of read after the other, each with every number of callers.
func (l *benchLoad) benchReads(ctx context.Context) ([][]string, error) {
	index, err := l.writeOnce(ctx, l.tree+"-first")
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"READS", "CALLERS", "READS/S", "CALL P50", "CALL P99", "CALLS"}}
	for _, kind := range l.options.reads {
		for _, callers := range l.options.callers {
			m, err := l.measureLoad(ctx, callers, func(ctx context.Context, m *measurement, name string, _ int) error {
				return l.readOnce(ctx, m, kind, name, index)
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, m.readRow(kind, callers))
		}
	}
	return rows, nil
}

// readOnce reads the usage of one leaf, after a write that is not counted if afterWrite is set.
func (l *benchLoad) readOnce(ctx context.Context, m *measurement, kind, name string, index uint64) error {
	if l.options.afterWrite {
		written, err := l.writeOnce(ctx, name)
		if err != nil {
			return err
		}
		index = written
	}
	options := &quoratev1.ReadOptions{}
	switch kind {
	case readStale:
		options.Consistency = quoratev1.Consistency_CONSISTENCY_STALE
	case readMinIndex:
		options.Consistency, options.MinIndex = quoratev1.Consistency_CONSISTENCY_STALE, index
	}
	return m.recordTime(func() error {
		_, err := l.quorate.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: l.tree, Node: benchLeaf(0), Read: options})
		return err
	})
}

// writeOnce allocates and releases, and returns the log index of the release.
func (l *benchLoad) writeOnce(ctx context.Context, id string) (uint64, error) {
	if err := l.allocateOne(ctx, []string{id}, 0); err != nil {
		return 0, err
	}
	answer, err := l.quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	return answer.GetIndex(), err
}

// readRow shows the rate of the reads, without the writes between them.
func (m measurement) readRow(kind string, callers int) []string {
	slices.Sort(m.calls)
	var busy time.Duration
	for _, took := range m.calls {
		busy += took
	}
	rate := "0"
	if busy > 0 {
		rate = fmt.Sprintf("%.0f", float64(callers*len(m.calls))/busy.Seconds())
	}
	return []string{
		kind, strconv.Itoa(callers), rate,
		m.latencyPercentile(50), m.latencyPercentile(99),
		strconv.Itoa(len(m.calls)),
	}
}
