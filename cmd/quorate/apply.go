package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

type applyOptions struct {
	*cli
	changeOptions
	file string
}

func newApplyCmd(c *cli) *cobra.Command {
	o := &applyOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make trees exactly as a manifest says, all or nothing",
		Long: `Make each tree that a manifest names exactly as it is written there, all or nothing. Trees that it does not
name stay as they are. Nodes keep their use; a node or resource in use is not removed.

Every difference is printed: + added, ~ changed, - removed, and ! for a node that uses more than its new limit.`,
		Example: `  quorate apply -f examples/cern.yaml --dry-run
  quorate tree export cern | sed s/20/25/ | quorate apply -f - --reason "physics bought a rack"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the manifest, or - for standard input")
	o.addFlags(cmd)
	return cmd
}

func (o *applyOptions) run(ctx context.Context) error {
	if o.file == "" {
		return usagef("say what to apply: -f FILE, or -f - for standard input")
	}
	trees, err := o.manifest()
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
		Trees:            trees,
		DryRun:           o.dryRun,
		ExpectedRevision: o.expected.value,
		Actor:            o.actor,
		Reason:           o.reason,
	})
	if err != nil {
		return err
	}
	o.units = units{}
	for _, tree := range trees {
		o.units.add(tree.GetName(), tree.GetResources())
	}
	o.sayResult(answer.GetResult(), o.dryRun)
	return o.print(answer, func(p *page) error {
		o.units.drawResult(p, answer.GetResult())
		return nil
	})
}

// manifest reads the trees; a file that is malformed is a matter of usage.
func (o *applyOptions) manifest() ([]*quoratev1.Tree, error) {
	name, in := "standard input", o.in
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		name, in = o.file, file
	}
	text, err := io.ReadAll(io.LimitReader(in, manifest.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	trees, err := manifest.Parse(name, text)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return trees, nil
}
