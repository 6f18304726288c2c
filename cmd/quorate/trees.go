package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

func newTreesCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "trees",
		Short: "List all trees",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.trees(cmd.Context()) },
	}
}

func (c *cli) trees(ctx context.Context) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.read()})
	if err != nil {
		return err
	}
	c.sayAge(answer.GetRead())
	return c.print(answer, func(p *page) error {
		rows := [][]string{{"TREE", "POLICY", "NODES", "CLAIMS", "RESOURCES"}}
		for _, t := range answer.GetTrees() {
			rows = append(rows, []string{
				t.GetName(), t.GetPolicy(), strconv.Itoa(int(t.GetNodeCount())), strconv.FormatInt(t.GetClaimCount(), 10),
				resources(t.GetResources()),
			})
		}
		return p.table(rows)
	})
}

func resources(registered []*quoratev1.Resource) string {
	var parts []string
	for _, r := range registered {
		parts = append(parts, r.GetName()+" ("+manifest.UnitName(r.GetUnit())+")")
	}
	return strings.Join(parts, ", ")
}
