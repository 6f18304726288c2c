// Package access has the commands about who may do what: identities, accounts, tokens, refusals and the mode of the
// cluster. What they ask for is decided by the servers; this package only knows the names of verbs and built-in roles.
package access

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	rights "github.com/quorate/quorate/internal/access"
)

// AddCommands adds the commands about access.
func AddCommands(to *cli.Nouns) {
	to.Add("access", newStatusCmd, newWhoAmICmd, newCheckCmd, newSetModeCmd)
	to.Add("access", localCommands()...)
	to.Add("account", newAccountCreateCmd, newAccountSetCmd, newAccountListCmd, newAccountDeleteCmd)
	to.Add("token", newTokenCreateCmd, newTokenRotateCmd, newTokenDeleteCmd, newTokenListCmd, newTokenCheckCmd)
	to.Add("refusal", newRefusalCreateCmd, newRefusalListCmd, newRefusalDeleteCmd)
	to.Add("role", newRoleListCmd)
	to.Add("binding", newBindingListCmd)
}

func verbNames() []string { return rights.AllVerbs.Names() }

// completeQuestion offers verbs, and then trees.
func completeQuestion(c *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return verbNames(), cobra.ShellCompDirectiveNoFileComp
		}
		return c.CompleteTrees(cmd, args, typed)
	}
}

// completeAccounts offers nothing if no server answers in time.
func completeAccounts(c *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp,
			func(ctx context.Context, quorate *client.Client) ([]string, error) {
				all, err := fetchAccounts(ctx, c, quorate)
				var names []string
				for _, account := range all.GetAccounts() {
					names = append(names, account.GetName())
				}
				return names, err
			})
	}
}

// parsePlace reads TREE or TREE:node/path; an empty list is the cluster.
func parsePlace(args []string) (cli.Place, error) {
	if len(args) == 0 {
		return cli.Place{}, nil
	}
	return cli.ParsePlace(args[0])
}

func placeText(p cli.Place) string {
	if p.Tree == "" {
		return "the cluster"
	}
	return p.String()
}

func modeText(mode quoratev1.AccessMode) string {
	return strings.ToLower(strings.TrimPrefix(mode.String(), "ACCESS_MODE_"))
}

// listText stands in a table: it writes a dash for an empty list.
func listText(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

func addReason(cmd *cobra.Command, reason *string) {
	cli.AddReasonFlag(cmd.Flags(), reason)
}
