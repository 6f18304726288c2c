package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

type exportOptions struct {
	*cli.Env
	at       subtreeFlag
	revision uint64
}

func newExportCmd(c *cli.Env) *cobra.Command {
	o := &exportOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "export [TREE...]",
		Short: "Print the configuration, or that of a subtree, as a manifest for apply",
		Long: `Print all trees and policies and the access section, as they are at one moment, as a manifest for
"quorate apply"; the same configuration gives the same text. The access section is left out while it is empty, and for
callers that may not read it. Accounts and tokens are never in it. With -o json, print the API request that would apply
all of this.

With the names of trees, print these with their bindings, and the policies that they use and the configuration defines.

With --at, print a node and what is below it, for "quorate apply" with the same --at. It needs the right to read the
configuration there, and none elsewhere.

With --revision, print the configuration as it was after that revision, as far as the history reaches back; "quorate
revision rollback" returns to it. It needs the right to read the configuration of the whole cluster.`,
		Example: `  quorate manifest export > quorate.yaml
  quorate manifest export cern tenants
  diff <(quorate manifest export --revision 7) <(quorate manifest export --revision 9)
  quorate manifest export --at cern:atlas > atlas.yaml
  quorate apply -f quorate.yaml --prune --expected-revision 7`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, trees []string) error {
			switch {
			case len(trees) == 0:
				return o.runExport(cmd.Context())
			case o.at.value != nil || o.revision != 0:
				return cli.Usagef("--at and --revision are not about whole trees: leave out %s", strings.Join(trees, " "))
			}
			return exportTrees(cmd.Context(), c, trees)
		},
	}
	cmd.Flags().Var(&o.at, "at", "print this node and what is below it only")
	cmd.Flags().Uint64Var(&o.revision, "revision", 0, "print the configuration after this revision")
	cmd.MarkFlagsMutuallyExclusive("at", "revision")
	return cmd
}

func (o *exportOptions) runExport(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	request := &adminv1.GetConfigurationRequest{Read: o.ReadOptions(), Revision: o.revision}
	if at := o.at.value; at != nil {
		request.Tree, request.Node = at.Tree, at.Node
	}
	answer, err := quorate.Configuration.GetConfiguration(ctx, request)
	if err != nil {
		return err
	}
	if o.revision != 0 && answer.GetRevision() != o.revision {
		return fmt.Errorf("the node that answered runs a version without past configurations; name another with --server")
	}
	o.ReportAge(answer.GetRead())
	o.Messagef("this is revision %d", answer.GetRevision())
	return printManifest(o.Env, &manifest.Manifest{
		At: o.at.value, Access: answer.GetAccess(), Policies: answer.GetPolicies(), Trees: answer.GetTrees(),
	}, false)
}

func exportTrees(ctx context.Context, c *cli.Env, names []string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	m := &manifest.Manifest{}
	known := map[string]bool{}
	for _, name := range names {
		answer, err := quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: name, Read: c.ReadOptions()})
		if err != nil {
			return err
		}
		c.ReportAge(answer.GetRead())
		m.Trees = append(m.Trees, answer.GetTree())
		for _, policy := range answer.GetPolicies() {
			if !known[policy.GetName()] {
				known[policy.GetName()] = true
				m.Policies = append(m.Policies, policy)
			}
		}
	}
	return printManifest(c, m, false)
}
