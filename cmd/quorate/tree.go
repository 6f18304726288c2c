package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newTreeCmd(c *cli) *cobra.Command {
	return newGroup("tree", "Export or delete trees", newTreeExportCmd(c), newTreeDeleteCmd(c))
}

func newTreeExportCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "export TREE...",
		Short: "Print trees as a manifest that apply takes",
		Long: `Print trees as a manifest that "quorate apply" takes. With -o json, print them as the API's request to apply
them instead, for programs.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeTrees,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.export(cmd.Context(), args) },
	}
}

func (c *cli) export(ctx context.Context, names []string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var trees []*quoratev1.Tree
	for _, name := range names {
		answer, err := quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: name, Read: c.read()})
		if err != nil {
			return err
		}
		c.sayAge(answer.GetRead())
		trees = append(trees, answer.GetTree())
	}
	return c.printTrees(trees)
}

type treeDeleteOptions struct {
	*cli
	changeOptions
	name string
}

func newTreeDeleteCmd(c *cli) *cobra.Command {
	o := &treeDeleteOptions{cli: c}
	cmd := &cobra.Command{
		Use:               "delete TREE",
		Short:             "Delete a tree that nothing is held in",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *treeDeleteOptions) run(ctx context.Context) error {
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	o.learnForTable(ctx, quorate) // before, for afterwards nobody knows the tree's units
	answer, err := quorate.Trees.DeleteTree(ctx, &quoratev1.DeleteTreeRequest{
		Name:             o.name,
		DryRun:           o.dryRun,
		ExpectedRevision: o.expected.value,
		Actor:            o.actor,
		Reason:           o.reason,
	})
	if err != nil {
		return err
	}
	return o.printResult(answer, answer.GetResult(), o.dryRun)
}
