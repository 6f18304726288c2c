package usage

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func newTreeListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all trees",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listTrees(cmd.Context(), c) },
	}
}

func listTrees(ctx context.Context, c *cli.Env) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
	if err != nil {
		return err
	}
	c.ReportAge(answer.GetRead())
	c.ReportFiltered(answer)
	return c.Print(answer, func(p *cli.Page) error {
		rows := [][]string{{"TREE", "POLICY", "NODES", "CLAIMS", "RESOURCES"}}
		for _, t := range answer.GetTrees() {
			rows = append(rows, []string{
				t.GetName(), t.GetPolicy(), strconv.Itoa(int(t.GetNodeCount())),
				strconv.FormatInt(t.GetClaimCount(), 10),
				resourcesText(t.GetResources()),
			})
		}
		return p.Table(rows)
	})
}

func resourcesText(registered []*quoratev1.Resource) string {
	var parts []string
	for _, r := range registered {
		parts = append(parts, r.GetName()+" ("+quantity.UnitName(r.GetUnit())+")")
	}
	return strings.Join(parts, ", ")
}
