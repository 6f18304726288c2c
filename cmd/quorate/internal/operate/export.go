package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// exportAttempts is how often an export reads limits and allocations until they belong together.
const exportAttempts = 5

func newExportCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export FOLDER",
		Short: "Write all limits and all that is held as CSV and SQL, to go on without Quorate",
		Long: `Write three files into FOLDER, which is made unless it exists; no file is overwritten:

  limits.csv   one row for each resource of each node: its limit in force (empty: unlimited), and what is held
  held.csv     one row for each amount and each item of each allocation: who holds it, where, since when
  quorate.sql  both as tables, quorate_limits and quorate_held, in SQL for PostgreSQL, SQLite and others

Amounts are in base units: bytes, or thousandths where the unit is milli. Times are those of the clock. Requests that
wait hold nothing and are not written; "quorate manifest export" has the configuration itself, "quorate snapshot create"
the backup that a cluster can be restored from.

What is written adds up: what is held at each node is the sum of its rows. If allocations change while they are read,
it is read again, up to five times. In a busy cluster cordon the trees before ("quorate node cordon TREE"), and so
nothing is granted any more where the export has ended already.

In a guarded cluster it needs a credential that may read all of it, such as one with the role operator on the cluster.`,
		Example: `  quorate node cordon farm --reason "we move to PostgreSQL"
  quorate cluster export farm-export
  psql -f farm-export/quorate.sql`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return exportHeld(cmd.Context(), c, args[0]) },
	}
}

func exportHeld(ctx context.Context, c *cli.Env, folder string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	limits, held := newLimitsTable(), newHeldTable()
	for attempt := 1; ; attempt++ {
		limits.rows, held.rows = nil, nil
		sums, err := readHeld(ctx, c, quorate, held)
		if err != nil {
			return err
		}
		differing, err := readLimits(ctx, c, quorate, limits, sums)
		if err != nil {
			return err
		}
		if differing == "" {
			break
		}
		if attempt == exportAttempts {
			return fmt.Errorf("what is held at %s changed each time while it was read: cordon the trees before", differing)
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("the folder cannot be made: %w", err)
	}
	files := []struct {
		name  string
		write func(io.Writer) error
	}{
		{"limits.csv", limits.writeCSV},
		{"held.csv", held.writeCSV},
		{"quorate.sql", func(to io.Writer) error { return writeSQL(to, limits, held) }},
	}
	for _, f := range files {
		if err := writeNewFile(filepath.Join(folder, f.name), f.write); err != nil {
			return err
		}
	}
	c.Messagef("wrote limits.csv with %s, held.csv with %s, and quorate.sql into %s",
		rowsText(limits), rowsText(held), folder)
	return nil
}

func rowsText(t *exportTable) string {
	if len(t.rows) == 1 {
		return "1 row"
	}
	return strconv.Itoa(len(t.rows)) + " rows"
}

func writeNewFile(file string, write func(io.Writer) error) (err error) {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the export cannot be written: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(file)) // an incomplete file is useless
		}
	}()
	return write(out)
}

// counter is what the sums of the export are compared by: a resource at the node where it is counted.
type counter struct{ tree, node, resource string }

func (at counter) String() string { return cli.PlaceOf(at.tree, at.node).String() + " " + at.resource }

var errExportFiltered = errors.New("an export needs all of the cluster, and you may see a part: " +
	"use a credential with the role operator on the cluster (quorate access whoami shows who you are)")

// readHeld reads all allocations into the table, and returns what they hold at each node.
func readHeld(ctx context.Context, c *cli.Env, quorate *client.Client, to *exportTable) (map[counter]int64, error) {
	sums := map[counter]int64{}
	read := time.Now()
	for page, err := range client.Pages(ctx, quorate.Allocations.ListAllocations,
		&quoratev1.ListAllocationsRequest{Read: c.ReadOptions()}) {
		switch {
		case err != nil:
			return nil, err
		case page.GetFiltered():
			return nil, errExportFiltered
		}
		for _, a := range page.GetAllocations() {
			ends := endOfAllocation(a, page.GetRead().GetLedgerTimeMs(), read)
			for i, claim := range a.GetClaims() {
				addHeldRows(to, a, i+1, claim, ends)
				for _, item := range claim.GetItems() {
					sums[counter{claim.GetTree(), claim.GetPlaced(), item.GetResource()}]++
				}
				for resource, amount := range claim.GetAmounts() {
					sums[counter{claim.GetTree(), claim.GetPlaced(), resource}] += amount
				}
			}
		}
	}
	return sums, nil
}

// endOfAllocation is the instant on the clock at which a lease or reservation ends unless it is renewed or confirmed;
// zero for others. Ledger time is nowMs at the instant now.
func endOfAllocation(a *quoratev1.Allocation, nowMs int64, now time.Time) time.Time {
	ends := a.GetExpiresLedgerMs()
	if a.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_RESERVED {
		ends = a.GetReservedUntilLedgerMs()
	}
	if ends == 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(ends-nowMs) * time.Millisecond).UTC().Truncate(time.Second)
}

// readLimits reads the limits of all nodes into the table. It returns a resource of which another amount is held than
// the sums say, or nothing if all are equal. It removes from sums what it has compared.
func readLimits(
	ctx context.Context, c *cli.Env, quorate *client.Client, to *exportTable, sums map[counter]int64,
) (differing string, err error) {
	for trees, err := range client.Pages(ctx, quorate.Trees.ListTrees,
		&quoratev1.ListTreesRequest{Read: c.ReadOptions()}) {
		switch {
		case err != nil:
			return "", err
		case trees.GetFiltered():
			return "", errExportFiltered
		}
		for _, tree := range trees.GetTrees() {
			request := &quoratev1.GetUsageRequest{Tree: tree.GetName(), Subtree: true, Read: c.ReadOptions()}
			usage, err := cli.AllPages(ctx, quorate.Trees.GetUsage, request)
			if err != nil {
				return "", err
			}
			for _, n := range usage.GetNodes() {
				for _, r := range n.GetResources() {
					addLimitRow(to, tree.GetName(), n.GetNode(), r)
					at := counter{tree.GetName(), n.GetNode(), r.GetResource()}
					if sums[at] != r.GetOwn() {
						differing = at.String()
					}
					delete(sums, at)
				}
			}
		}
	}
	for at, amount := range sums { // of nodes that are gone by now
		if amount != 0 {
			differing = at.String()
		}
	}
	return differing, nil
}
