//go:build unix

package bench

import (
	"context"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/load"
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

// beginReads reads the usage of one leaf, after a write that is not measured if --after-write is set.
func beginReads(ctx context.Context, m *measurement) (load.Work, error) {
	index, err := m.writeOnce(ctx, m.firstID())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, it *load.Iteration) error {
		read := &quoratev1.ReadOptions{}
		if m.readKind != readLinearizable {
			read.Consistency = quoratev1.Consistency_CONSISTENCY_STALE
		}
		if m.readKind == readMinIndex {
			read.MinIndex = index
		}
		if m.options.afterWrite {
			written, err := m.writeOnce(ctx, m.iterationID(it))
			if err != nil {
				return err
			}
			if m.readKind == readMinIndex {
				read.MinIndex = written
			}
		}
		return it.Measure("read "+m.readKind, 1, func() error {
			_, err := m.quorate.Trees.GetUsage(ctx,
				&quoratev1.GetUsageRequest{Tree: m.tree, Node: m.leafPath(0), Read: read})
			return err
		})
	}, nil
}

// writeOnce returns the log index of the release.
func (s *session) writeOnce(ctx context.Context, id string) (uint64, error) {
	if _, err := s.quorate.Allocations.Allocate(ctx, s.newRequest(id, 0)); err != nil {
		return 0, err
	}
	answer, err := s.quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	return answer.GetWrite().GetIndex(), err
}
