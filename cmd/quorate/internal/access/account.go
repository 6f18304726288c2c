package access

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type accountOptions struct {
	*cli.Env
	description, reason string
	groups              []string
	disable, enable     bool
}

func (o *accountOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.groups, "group", nil, "`NAME` of a group, without a slash; may be repeated")
	cmd.Flags().StringVar(&o.description, "description", "", "free text for people")
	cmd.Flags().BoolVar(&o.disable, "disable", false, "refuse all its tokens")
	addReason(cmd, &o.reason)
}

func newAccountCreateCmd(c *cli.Env) *cobra.Command {
	o := &accountOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Add an account",
		Long: `Add an account. It has no rights until a binding names it or one of its groups, and cannot log in until it
has a token. Adding the same account again changes nothing.`,
		Example: `  quorate account create sim-ci --group ci --description "pipelines of the simulation"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changeAccount(cmd.Context(), func(ctx context.Context, quorate *client.Client) error {
				answer, err := quorate.Access.CreateAccount(ctx, &adminv1.CreateAccountRequest{
					Account: &adminv1.Account{
						Name: args[0], Description: o.description, Groups: o.groups, Disabled: o.disable,
					},
					Reason: o.reason,
				})
				if err != nil {
					return err
				}
				o.Messagef("to give it a token: quorate token create %s --out %s.token", args[0], args[0])
				return o.Print(answer, lineOf("%s is an account", args[0]))
			})
		},
	}
	o.addFlags(cmd)
	return cmd
}

func newAccountSetCmd(c *cli.Env) *cobra.Command {
	o := &accountOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the description, the groups or the state of an account",
		Long: `Change the description, the groups or the state of an account. What no flag names stays as it is; --group
replaces all groups, and --group "" removes them. The tokens of a disabled account are refused from then on, and its
leases are not renewed. What it has scheduled, put on hold or asked for stays, and is named.`,
		Example: `  quorate account set sim-ci --group ci --group night-shift
  quorate account set sim-ci --disable --reason "it left the project"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeAccounts(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if o.disable && o.enable {
				return cli.Usagef("use only one of --disable and --enable")
			}
			if !changed("group") && !changed("description") && !o.disable && !o.enable {
				return cli.Usagef("name what to change: --group, --description, --disable or --enable")
			}
			return o.changeAccount(cmd.Context(), func(ctx context.Context, quorate *client.Client) error {
				return o.updateAccount(ctx, quorate, args[0], changed)
			})
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.enable, "enable", false, "accept its tokens again")
	return cmd
}

// updateAccount sends what the flags change, and shows the account afterwards.
func (o *accountOptions) updateAccount(
	ctx context.Context, quorate *client.Client, name string, changed func(flag string) bool,
) error {
	request := &adminv1.UpdateAccountRequest{Name: name, Reason: o.reason}
	if changed("group") {
		request.Groups = &adminv1.AccountGroups{Names: o.groups}
	}
	if changed("description") {
		request.Description = &o.description
	}
	if o.disable || o.enable {
		request.Disabled = &o.disable
	}
	answer, err := quorate.Access.UpdateAccount(ctx, request)
	if err != nil {
		return err
	}
	all, err := fetchAccounts(ctx, o.Env, quorate)
	if err != nil {
		return err
	}
	var shown []*adminv1.Account
	for _, account := range all.GetAccounts() {
		if account.GetName() != name {
			continue
		}
		shown = append(shown, account)
		if account.GetDisabled() {
			o.ReportStanding(ctx, quorate, "account/"+name)
		}
	}
	return o.Print(answer, func(p *cli.Page) error { return p.Table(accountRows(shown)) })
}

func newAccountListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the accounts by name",
		Example: "  quorate account list\n  quorate account list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quorate, ctx, cancel, err := c.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			all, err := fetchAccounts(ctx, c, quorate)
			if err != nil {
				return err
			}
			c.ReportAge(all.GetRead())
			return c.Print(all, func(p *cli.Page) error { return p.Table(accountRows(all.GetAccounts())) })
		},
	}
}

func newAccountDeleteCmd(c *cli.Env) *cobra.Command {
	o := &accountOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove an account with its tokens",
		Long: `Remove an account with its tokens, which are refused from then on. Bindings that name it stay, and count
again for a new account of the same name: remove them first, or disable the account instead. Scheduled limits, holds and
open requests for limits that it has made stay, and are named with the commands that end them.`,
		Example:           "  quorate account delete sim-ci --reason \"replaced by sim-ci-2\"",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeAccounts(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changeAccount(cmd.Context(), func(ctx context.Context, quorate *client.Client) error {
				answer, err := quorate.Access.DeleteAccount(ctx,
					&adminv1.DeleteAccountRequest{Name: args[0], Reason: o.reason})
				if err != nil {
					return err
				}
				o.ReportStanding(ctx, quorate, "account/"+args[0])
				return o.Print(answer, lineOf("%s and its tokens were removed", args[0]))
			})
		},
	}
	addReason(cmd, &o.reason)
	return cmd
}

func (o *accountOptions) changeAccount(
	ctx context.Context, change func(context.Context, *client.Client) error,
) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return change(ctx, quorate)
}

func lineOf(format string, args ...any) func(*cli.Page) error {
	return func(p *cli.Page) error {
		p.Linef(format, args...)
		return nil
	}
}

func fetchAccounts(
	ctx context.Context, c *cli.Env, quorate *client.Client,
) (*adminv1.ListAccountsResponse, error) {
	return cli.AllPages(ctx, quorate.Access.ListAccounts, &adminv1.ListAccountsRequest{Read: c.ReadOptions()})
}

func accountRows(accounts []*adminv1.Account) [][]string {
	rows := [][]string{{"ACCOUNT", "STATE", "GROUPS", "DESCRIPTION"}}
	for _, a := range accounts {
		state := "enabled"
		if a.GetDisabled() {
			state = "disabled"
		}
		rows = append(rows, []string{a.GetName(), state, listText(a.GetGroups()), a.GetDescription()})
	}
	return rows
}
