package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newExportCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print the whole configuration as a manifest that apply takes",
		Long: `Print all trees, as they are at one moment, as a manifest that "quorate apply" takes; the same configuration gives
the same text. With -o json, print them as the API's request to apply them instead, for programs.`,
		Example: `  quorate export > quorate.yaml
  quorate apply -f quorate.yaml --prune --expected-revision 7`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.exportAll(cmd.Context()) },
	}
}

func (c *cli) exportAll(ctx context.Context) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.GetConfiguration(ctx, &quoratev1.GetConfigurationRequest{Read: c.read()})
	if err != nil {
		return err
	}
	c.sayAge(answer.GetRead())
	c.say("this is revision %d", answer.GetRevision())
	return c.printTrees(answer.GetTrees())
}
