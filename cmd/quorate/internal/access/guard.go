package access

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type guardOptions struct {
	*cli.Env
	reason string
	force  bool
}

func newSetModeCmd(c *cli.Env) *cobra.Command {
	o := &guardOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "set {watching | guarded}",
		Short: "Make the rights of callers count, in two steps",
		Long: `Make the rights of callers count, in two steps. It is a fact of the whole cluster, and "quorate access status"
shows it.

watching  What a guarded cluster would refuse is counted and logged, and nothing is refused for want of a right. Give
          tokens and bindings to callers until the metric quorate_access_would_refuse_total no longer grows.
guarded   What no binding permits is refused. This cannot be undone. If no one can log in any more, "quorate access
          recover" on the machine of the leader makes an administrator.

Before the cluster is guarded, the servers are asked what would lock you out: whether they know you, and whether you
could still manage access. If not, nothing is changed, unless --force is set. The servers refuse it themselves if no one
could administer the cluster.`,
		Example: `  quorate access set watching
  quorate access set guarded --reason "a week without refusals"`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{watchingMode, guardedMode},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usagef("name the mode: %s or %s", watchingMode, guardedMode)
			case args[0] == guardedMode:
				return o.runGuard(cmd.Context())
			case args[0] != watchingMode:
				return cli.Usagef("the mode is %s or %s, not %q", watchingMode, guardedMode, args[0])
			case o.force:
				return cli.Usagef("--force is for the mode %s", guardedMode)
			}
			quorate, ctx, cancel, err := o.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			return o.setMode(ctx, quorate, quoratev1.AccessMode_ACCESS_MODE_WATCHING)
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "also if you could not manage access afterwards")
	addReason(cmd, &o.reason)
	return cmd
}

// Modes that a cluster can be given.
const (
	watchingMode = "watching"
	guardedMode  = "guarded"
)

func (o *guardOptions) runGuard(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	hindrances, err := o.findHindrances(ctx, quorate)
	if err != nil {
		return err
	}
	for _, text := range hindrances {
		o.Messagef("hindrance: %s", text)
	}
	if len(hindrances) > 0 && !o.force {
		o.Messagef("nothing was changed; --force does it nevertheless")
		return &cli.ExitError{Code: cli.ExitDenied, Ours: true}
	}
	return o.setMode(ctx, quorate, quoratev1.AccessMode_ACCESS_MODE_GUARDED)
}

func (o *guardOptions) findHindrances(ctx context.Context, quorate *client.Client) ([]string, error) {
	identity, err := quorate.Identity.WhoAmI(ctx, &quoratev1.WhoAmIRequest{})
	if err != nil {
		return nil, err
	}
	manages, err := askRight(ctx, quorate, "access.manage", cli.Place{})
	if err != nil {
		return nil, err
	}
	var texts []string
	if identity.GetUser() == "" {
		texts = append(texts, "you present no token or certificate: export QUORATE_TOKEN_FILE=FILE")
	}
	if !manages.GetAllowed()[0] {
		texts = append(texts, "you would not have access.manage: quorate binding list access.manage shows who would")
	}
	if identity.GetMode() == quoratev1.AccessMode_ACCESS_MODE_OPEN {
		texts = append(texts, "what would be refused was never counted: quorate access set watching")
	}
	return texts, nil
}

func (o *guardOptions) setMode(ctx context.Context, quorate *client.Client, mode quoratev1.AccessMode) error {
	answer, err := quorate.Access.SetAccessMode(ctx, &adminv1.SetAccessModeRequest{Mode: mode, Reason: o.reason})
	if err != nil {
		return err
	}
	return o.Print(answer, func(p *cli.Page) error {
		if answer.GetBefore() == mode {
			p.Linef("unchanged: the cluster is %s already", modeText(mode))
		} else {
			p.Linef("the cluster is %s; before, it was %s", modeText(mode), modeText(answer.GetBefore()))
		}
		return nil
	})
}
