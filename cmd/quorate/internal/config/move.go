package config

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type moveOptions struct {
	changeOptions
	from, to string
}

func newMoveCmd(c *cli.Env) *cobra.Command {
	o := &moveOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "move TREE:old/path new/path",
		Short: "Rename a node, or move it with everything below it",
		Long: `Rename a node, or move it with everything below it under another parent, which must exist. Allocations
move along; the limits of the old and new ancestors are checked. The new path is in the same tree, whose
name may stand before it.`,
		Example: `  quorate node move cern:atlas/higgs atlas/bosons
  quorate node move cern:atlas/higgs cern:atlas/bosons
  quorate node move cern:atlas/physics/simulation atlas/operations/simulation --reason "reorganisation"`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.from, o.to = args[0], args[1]
			return o.runMove(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *moveOptions) runMove(ctx context.Context) error {
	from, err := cli.ParsePlace(o.from)
	if err != nil {
		return err
	}
	if from.Node == "" {
		return cli.Usagef("%q is the root of a tree, which cannot be moved: write TREE:old/path", o.from)
	}
	to := o.to
	if tree, path, named := strings.Cut(o.to, ":"); named {
		if to = path; tree != from.Tree {
			return cli.Usagef("a node stays in its tree: %q is not in tree %s", o.to, from.Tree)
		}
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return quorate.Trees.MoveNode(ctx, &quoratev1.MoveNodeRequest{
			Tree: from.Tree, Node: from.Node, NewNode: to,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}
