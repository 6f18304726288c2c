package access

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
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
				answer, err := quorate.Access.CreateAccount(ctx, &quoratev1.CreateAccountRequest{
					Account: &quoratev1.Account{
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

// updateAccount sends the account as it is, with what the flags change.
func (o *accountOptions) updateAccount(
	ctx context.Context, quorate *client.Client, name string, changed func(flag string) bool,
) error {
	all, err := fetchAccounts(ctx, o.Env, quorate)
	if err != nil {
		return err
	}
	for _, account := range all.GetAccounts() {
		if account.GetName() != name {
			continue
		}
		if changed("group") {
			account.Groups = o.groups
		}
		if changed("description") {
			account.Description = o.description
		}
		account.Disabled = o.disable || account.GetDisabled() && !o.enable
		answer, err := quorate.Access.UpdateAccount(ctx, &quoratev1.UpdateAccountRequest{
			Account: account, Reason: o.reason,
		})
		if err != nil {
			return err
		}
		if account.GetDisabled() {
			o.ReportStanding(ctx, quorate, "account/"+name)
		}
		return o.Print(answer, func(p *cli.Page) error { return p.Table(accountRows([]*quoratev1.Account{account})) })
	}
	return fmt.Errorf("there is no account %q; quorate account list shows all", name)
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
					&quoratev1.DeleteAccountRequest{Name: args[0], Reason: o.reason})
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
) (*quoratev1.ListAccountsResponse, error) {
	all := &quoratev1.ListAccountsResponse{}
	request := &quoratev1.ListAccountsRequest{Read: c.ReadOptions()}
	for {
		page, err := quorate.Access.ListAccounts(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Accounts = append(all.Accounts, page.GetAccounts()...)
		all.Read = page.GetRead()
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return all, nil
		}
	}
}

func accountRows(accounts []*quoratev1.Account) [][]string {
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
