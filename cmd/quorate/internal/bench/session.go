//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/load"
)

const benchActor = "quorate cluster bench"

// benchCluster uses the cluster of the command line, or starts one of its own.
func benchCluster(ctx context.Context, c *cli.Env, o options) (err error) {
	var cluster *ownCluster
	if o.cluster > 0 {
		if cluster, err = startCluster(ctx, o.cluster); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.stop()) }()
		c.Servers = cluster.urls()
	}
	report, err := runSession(ctx, c, o, cluster)
	if err != nil {
		return err
	}
	return report.publish(c, o)
}

// runSession makes the tree of the workload, measures, and cleans up. --timeout bounds each call, not the whole.
func runSession(ctx context.Context, c *cli.Env, o options, cluster *ownCluster) (*Report, error) {
	var clientOptions []client.Option
	if !o.join {
		clientOptions = append(clientOptions, client.WithoutJoining())
	}
	quorate, err := c.NewClient(clientOptions...)
	if err != nil {
		return nil, err
	}
	s := &session{options: o, quorate: quorate, tree: "bench-" + o.workloadName + "-" + uuid.NewString()}
	if err := s.prepareTree(ctx); err != nil {
		if client.MayBeDone(err) { // such as after an interruption
			s.deleteUnused(ctx, c)
		}
		return nil, err
	}
	report := newReport(c, o)
	err = s.measureAll(ctx, report, cluster)
	report.Ledger = s.cleanUp(ctx, c)
	if err != nil {
		for _, note := range report.Ledger.notes() {
			c.Messagef("%s", note)
		}
		return nil, err
	}
	return report, nil
}

// prepareTree refuses a name that is taken: nothing of others is changed.
func (s *session) prepareTree(ctx context.Context) error {
	_, err := s.quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: s.tree})
	if err == nil {
		return fmt.Errorf("tree %s exists and is not of this run", s.tree)
	}
	if connect.CodeOf(err) != connect.CodeNotFound {
		return err
	}
	_, err = s.quorate.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
		Trees: []*quoratev1.Tree{s.options.workload.tree(s)}, Actor: benchActor, Reason: "measurement",
	})
	return err
}

// measureAll measures each number of callers, and each kind of read, until ctx ends.
func (s *session) measureAll(ctx context.Context, report *Report, cluster *ownCluster) error {
	kinds := []string{""}
	if s.options.workloadName == workloadReads {
		kinds = s.options.reads
	}
	for _, kind := range kinds {
		for _, callers := range s.options.callers {
			m := &measurement{session: s, number: len(report.Runs) + 1, callers: callers, readKind: kind}
			run, err := m.measure(ctx, cluster)
			if err != nil {
				return err
			}
			report.Runs = append(report.Runs, run)
			if run.Stopped == load.StoppedByCancel {
				return nil // what was measured before is reported
			}
		}
	}
	return nil
}

func (m *measurement) measure(ctx context.Context, cluster *ownCluster) (Run, error) {
	usage := cpuUsage{cluster: cluster}
	atEnd := sync.OnceFunc(func() {
		if m.atEnd != nil {
			m.atEnd()
		}
	})
	o := m.options
	var err error
	m.generator, err = load.New(load.Config{
		Callers: m.callers, Rate: o.rate, Warmup: o.warmup, Duration: o.duration, Count: o.count,
		IterationKind: o.workload.iteration, IterationUnits: int64(o.batch),
		ErrorCode: errorCode, ErrorLimit: o.maxErrors,
		OnMeasureStart: usage.begin,
		OnMeasureEnd: func() {
			usage.end()
			atEnd()
		},
	})
	if err != nil {
		return Run{}, err
	}
	work, err := o.workload.begin(ctx, m)
	if err != nil {
		return Run{}, err
	}
	run := Run{Result: m.generator.Run(ctx, work), Read: m.readKind}
	moveFirst(run.Operations, o.workload.iteration)
	atEnd() // the hook is not called if the warm-up did not end
	usage.report(&run)
	return run, nil
}

// moveFirst puts whole iterations before their steps.
func moveFirst(operations []load.Operation, kind string) {
	slices.SortStableFunc(operations, func(a, b load.Operation) int {
		switch {
		case a.Kind == kind && b.Kind != kind:
			return -1
		case b.Kind == kind && a.Kind != kind:
			return 1
		}
		return 0
	})
}

func errorCode(err error) string {
	failure := (*elementError)(nil)
	_, denied := client.DecisionOf(err)
	switch {
	case errors.As(err, &failure):
		return failure.code
	case denied:
		return "denied"
	case errors.Is(err, client.ErrUnavailable):
		return connect.CodeUnavailable.String()
	case errors.Is(err, errMissing):
		return "missing"
	}
	return connect.CodeOf(err).String()
}
