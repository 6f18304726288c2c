package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// benchLoad is the load of one run of the command.
type benchLoad struct {
	quorate *client.Client
	options benchOptions
	tree    string
	// rounds counts the measurements; it is part of ids, which must be unique.
	rounds int
}

// measurement is the result for one number of callers.
type measurement struct {
	pairs int
	took  time.Duration
	calls []time.Duration
}

func (m measurement) tableRow(o benchOptions, callers int) []string {
	slices.Sort(m.calls)
	return []string{
		strconv.Itoa(callers), strconv.Itoa(o.batch), strconv.Itoa(o.leaves),
		fmt.Sprintf("%.0f", float64(m.pairs)/m.took.Seconds()),
		m.latencyPercentile(50), m.latencyPercentile(99),
		strconv.Itoa(len(m.calls)),
	}
}

// latencyPercentile is a percentile of the sorted durations of calls.
func (m measurement) latencyPercentile(p int) string {
	at := time.Duration(0)
	if len(m.calls) > 0 {
		at = m.calls[min(len(m.calls)*p/100, len(m.calls)-1)]
	}
	return at.Round(10 * time.Microsecond).String()
}

// work is what one caller repeats, with a unique name each time.
type work func(ctx context.Context, m *measurement, name string, caller int) error

// measureLoad runs callers until the time is over; each finishes the work that it has begun.
func (l *benchLoad) measureLoad(ctx context.Context, callers int, do work) (measurement, error) {
	l.rounds++
	results := make([]measurement, callers)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range callers {
		group.Go(func() error {
			for n := 0; time.Since(began) < l.options.duration; n++ {
				if err := do(ctx, &results[i], fmt.Sprintf("%s-%d-%d-%d", l.tree, l.rounds, i, n), i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return measurement{}, err
	}
	total := measurement{took: time.Since(began)}
	for _, r := range results {
		total.pairs += r.pairs
		total.calls = append(total.calls, r.calls...)
	}
	return total, nil
}

// allocateAndRelease allocates and releases, one or a batch, under ids that begin with name.
func (l *benchLoad) allocateAndRelease(ctx context.Context, m *measurement, name string, caller int) error {
	ids := make([]string, l.options.batch)
	for i := range ids {
		ids[i] = name + "-" + strconv.Itoa(i)
	}
	if err := m.recordTime(func() error { return l.allocateOne(ctx, ids, caller) }); err != nil {
		return err
	}
	if err := m.recordTime(func() error { return l.releaseOne(ctx, ids) }); err != nil {
		return err
	}
	m.pairs += len(ids)
	return nil
}

func (m *measurement) recordTime(call func() error) error {
	began := time.Now()
	err := call()
	m.calls = append(m.calls, time.Since(began))
	return err
}

func (l *benchLoad) allocateOne(ctx context.Context, ids []string, caller int) error {
	requests := make([]*quoratev1.AllocateRequest, len(ids))
	for i, id := range ids {
		requests[i] = &quoratev1.AllocateRequest{Id: id, Claims: []*quoratev1.Claim{{
			Tree: l.tree, Node: benchLeaf((caller + i) % l.options.leaves), Amounts: map[string]int64{"cpu": 1, "memory": 1},
		}}}
	}
	if len(requests) == 1 {
		_, err := l.quorate.Allocations.Allocate(ctx, requests[0])
		return err
	}
	answer, err := l.quorate.Allocations.BatchAllocate(ctx, &quoratev1.BatchAllocateRequest{Requests: requests})
	for _, o := range answer.GetOutcomes() {
		err = errors.Join(err, failureOf(o.GetFailure()))
	}
	return err
}

func (l *benchLoad) releaseOne(ctx context.Context, ids []string) error {
	if len(ids) == 1 {
		_, err := l.quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: ids[0]})
		return err
	}
	answer, err := l.quorate.Allocations.BatchRelease(ctx, &quoratev1.BatchReleaseRequest{Ids: ids})
	for _, o := range answer.GetOutcomes() {
		err = errors.Join(err, failureOf(o.GetFailure()))
	}
	return err
}

func failureOf(f *quoratev1.Failure) error {
	if f == nil {
		return nil
	}
	return fmt.Errorf("%s (%s)", f.GetMessage(), f.GetCode())
}

// cleanUp releases what an interrupted measurement left and deletes the tree, also when ctx has ended.
func (l *benchLoad) cleanUp(ctx context.Context, c *cli.Env) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	if err := l.releaseAll(ctx); err != nil {
		c.Messagef("could not release what is left in tree %s: %s", l.tree, cli.ErrorText(err))
		return
	}
	if _, err := l.quorate.Trees.DeleteTree(ctx,
		&quoratev1.DeleteTreeRequest{Name: l.tree, Actor: "quorate bench", Reason: "measured"}); err != nil {
		c.Messagef("could not delete tree %s: %s", l.tree, cli.ErrorText(err))
	}
}

func (l *benchLoad) releaseAll(ctx context.Context) error {
	for {
		page, err := l.quorate.Allocations.ListAllocations(ctx,
			&quoratev1.ListAllocationsRequest{Tree: l.tree, PageSize: 1000})
		if err != nil {
			return err
		}
		var ids []string
		for _, a := range page.GetAllocations() {
			ids = append(ids, a.GetId())
		}
		switch {
		case len(ids) > 0:
			if err := l.releaseOne(ctx, ids); err != nil {
				return err
			}
		case page.GetNextPageToken() == "":
			return nil
		default:
			return fmt.Errorf("tree %s has too many allocations", l.tree)
		}
	}
}
