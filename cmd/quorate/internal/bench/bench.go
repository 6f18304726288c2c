// Package bench measures a cluster by loading it.
package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// benchOptions say what to measure.
type benchOptions struct {
	callers  []int
	batch    int
	leaves   int
	duration time.Duration

	reads      []string
	afterWrite bool

	boskos, boskosType string
	boskosQueue        bool
}

// NewBenchCmd is "quorate bench".
func NewBenchCmd(c *cli.Env) *cobra.Command {
	o := benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the throughput and latency of a cluster",
		Long: `Measure pairs of allocate and release against a cluster.

A pair allocates one unit of each of two resources on a leaf three levels deep, all of whose limits are checked, and
then releases it. The command makes a tree with a unique name and deletes it at the end. With --batch a call carries
that many allocations, and another as many releases. Results of different runs do not compare well: measure what you
want to compare in one run, and take medians of several.

With --reads it measures reads of the usage of one leaf instead: linearizable ones, stale ones, and stale ones that wait
for a log index. The first server of --server answers them, so name a follower to measure followers. With --after-write
each read follows a write that is not counted: a read on a follower then waits for that write.

With --boskos a pair acquires a free resource of an existing type and releases it, in the protocol of Boskos: of this
server or of the original. No tree is made.`,
		Example: `  quorate bench --callers 1,16,64 --for 5s
  quorate bench --callers 4 --batch 512
  quorate bench --reads linearizable,stale,min-index --callers 1,64
  quorate bench --boskos http://127.0.0.1:8080 --type aws-quota-slice --queue`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkOptions(); err != nil {
				return err
			}
			if o.boskos != "" {
				return benchBoskos(cmd.Context(), c, o)
			}
			return runBench(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&o.callers, "callers", []int{1, 16, 64}, "numbers of concurrent callers, one measurement for each")
	flags.IntVar(&o.batch, "batch", 1, "allocations in one call, 1 to 1000")
	flags.IntVar(&o.leaves, "leaves", 1, "leaves to spread over, 1 to 1000; with one, all callers contend")
	flags.DurationVar(&o.duration, "for", 3*time.Second, "how long each measurement takes")
	flags.StringSliceVar(&o.reads, "reads", nil, "measure reads of these kinds: "+strings.Join(readKinds, ", "))
	flags.BoolVar(&o.afterWrite, "after-write", false, "with --reads: write before each read")
	flags.StringVar(&o.boskos, "boskos", "", "measure a server for Boskos clients at this `URL`")
	flags.StringVar(&o.boskosType, "type", "", "with --boskos: the type of resources to acquire")
	flags.BoolVar(&o.boskosQueue, "queue", false, "with --boskos: wait in the queue, by a request id")
	return cmd
}

func (o benchOptions) checkOptions() error {
	for _, n := range o.callers {
		if n < 1 || n > 1024 {
			return cli.Usagef("--callers must be between 1 and 1024, not %d", n)
		}
	}
	switch {
	case o.batch < 1 || o.batch > 1000:
		return cli.Usagef("--batch must be between 1 and 1000, not %d", o.batch)
	case o.leaves < 1 || o.leaves > 1000:
		return cli.Usagef("--leaves must be between 1 and 1000, not %d", o.leaves)
	case (o.boskos == "") != (o.boskosType == ""):
		return cli.Usagef("--boskos and --type must be used together")
	case o.duration <= 0:
		return cli.Usagef("--for must be more than 0, not %v", o.duration)
	case o.afterWrite && len(o.reads) == 0:
		return cli.Usagef("--after-write needs --reads")
	case len(o.reads) > 0 && (o.boskos != "" || o.batch != 1):
		return cli.Usagef("--reads cannot be combined with --boskos or --batch")
	}
	return checkReadKinds(o.reads)
}

// runBench measures one number of callers after the other. --timeout bounds each call, not the whole.
func runBench(ctx context.Context, c *cli.Env, o benchOptions) error {
	quorate, err := c.NewClient()
	if err != nil {
		return err
	}
	load := &benchLoad{quorate: quorate, options: o, tree: "bench-" + uuid.NewString()}
	if _, err := quorate.Trees.ApplyTrees(ctx, load.treeManifest()); err != nil {
		return err
	}
	defer load.cleanUp(ctx, c)
	var rows [][]string
	if len(o.reads) > 0 {
		rows, err = load.benchReads(ctx)
	} else {
		rows, err = load.benchPairs(ctx)
	}
	if err != nil {
		return err
	}
	p := &cli.Page{}
	if err := p.Table(rows); err != nil {
		return err
	}
	return c.Write(p.Bytes())
}

func (l *benchLoad) benchPairs(ctx context.Context) ([][]string, error) {
	rows := [][]string{{"CALLERS", "BATCH", "LEAVES", "PAIRS/S", "CALL P50", "CALL P99", "CALLS"}}
	for _, callers := range l.options.callers {
		m, err := l.measureLoad(ctx, callers, l.allocateAndRelease)
		if err != nil {
			return nil, err
		}
		rows = append(rows, m.tableRow(l.options, callers))
	}
	return rows, nil
}

// treeManifest is a tree of three levels below the root, with limits so large that they are checked and never exceeded.
func (l *benchLoad) treeManifest() *quoratev1.ApplyTreesRequest {
	limits := func() map[string]*quoratev1.Limit {
		plenty := &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 1 << 40}}
		return map[string]*quoratev1.Limit{"cpu": plenty, "memory": plenty}
	}
	tree := &quoratev1.Tree{
		Name: l.tree, Limits: limits(),
		Resources: []*quoratev1.Resource{
			{Name: "cpu", Unit: quoratev1.Unit_UNIT_MILLI},
			{Name: "memory", Unit: quoratev1.Unit_UNIT_BYTES},
		},
		Nodes: []*quoratev1.Node{{Path: "a", Limits: limits()}, {Path: "a/b", Limits: limits()}},
	}
	for i := range l.options.leaves {
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: benchLeaf(i), Limits: limits()})
	}
	return &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}, Actor: "quorate bench", Reason: "measurement"}
}

func benchLeaf(i int) string { return fmt.Sprintf("a/b/leaf-%d", i) }
