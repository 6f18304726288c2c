package access

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type adoptOptions struct {
	*cli.Env
	owner, prefix, tree, reason string
	dryRun                      bool
}

// adopted is the output of adopt.
type adopted struct {
	Owner string `json:"owner"`
	// Adopted counts those that got the owner, or would get it.
	Adopted int `json:"adopted"`
	// Left are those that stayed without an owner.
	Left   []string `json:"left,omitempty"`
	DryRun bool     `json:"dryRun"`
}

func newAdoptCmd(c *cli.Env) *cobra.Command {
	o := &adoptOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "adopt --owner USER",
		Short: "Give allocations that have no owner to a user",
		Long: `Give allocations, leases and waiting requests that have no owner to a user. They were made before the
cluster knew its callers. In a guarded cluster only their owner, or a caller with hold.operate, can renew or release
them. Those that have an owner stay as they are, so it may be repeated.

USER is the name of an account, or ISSUER/NAME, as "quorate access whoami" shows it.`,
		Example: `  quorate access adopt --owner zuul --ids zuul/ --dry-run
  quorate access adopt --owner zuul --ids zuul/
  quorate access adopt --owner cert/nodepool --tree nodepool --reason "before guard on"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runAdopt(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.owner, "owner", "", "the `USER` who gets them (required)")
	flags.StringVar(&o.prefix, "ids", "", "only those whose ids begin with `PREFIX`")
	flags.StringVar(&o.tree, "tree", "", "only those with a claim in this `TREE`")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count them")
	addReason(cmd, &o.reason)
	return cmd
}

func (o *adoptOptions) runAdopt(ctx context.Context) error {
	if o.owner == "" {
		return cli.Usagef("--owner is missing: name an account, or a user ISSUER/NAME")
	}
	if !strings.Contains(o.owner, "/") {
		o.owner = "account/" + o.owner
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	done := adopted{Owner: o.owner, DryRun: o.dryRun}
	if done.Adopted, done.Left, err = o.adoptPages(ctx, quorate); err != nil {
		if done.Adopted > 0 && !o.dryRun {
			o.Messagef("%d were adopted before it failed; repeat the command for the rest", done.Adopted)
		}
		return err
	}
	return o.PrintValue(done, func(p *cli.Page) error {
		if o.dryRun {
			p.Linef("%d allocations without an owner would be given to %s", done.Adopted, o.owner)
		} else {
			p.Linef("%d allocations without an owner were given to %s", done.Adopted, o.owner)
		}
		for _, id := range done.Left {
			p.Linef("left without an owner: %s; its id is taken in the namespace of %s, or it ends soon", id, o.owner)
		}
		return nil
	})
}

// adoptPages makes one command in the log for each page.
func (o *adoptOptions) adoptPages(ctx context.Context, quorate *client.Client) (count int, left []string, err error) {
	request := &quoratev1.AdoptAllocationsRequest{
		Owner: o.owner, Namespace: o.Namespace, IdPrefix: o.prefix, Tree: o.tree, DryRun: o.dryRun, Reason: o.reason,
	}
	for {
		page, err := quorate.Access.AdoptAllocations(ctx, request)
		if err != nil {
			return count, left, err
		}
		for _, a := range page.GetLeft() {
			left = append(left, cli.NameText(a, cli.DefaultNamespace))
		}
		count += int(page.GetAdopted())
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return count, left, nil
		}
	}
}
