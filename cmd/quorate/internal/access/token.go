package access

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// defaultLife is that of a token for which no --life is given.
const defaultLife = 90 * 24 * time.Hour

type tokenOptions struct {
	*cli.Env
	description, reason, out string
	secretFile               string
	verbs                    []string
	life, overlap            time.Duration
}

func newTokenCreateCmd(c *cli.Env) *cobra.Command {
	o := &tokenOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "create {ACCOUNT | --secret-file FILE [ACCOUNT]}",
		Short: "Make a token of an account",
		Long: `Make a token of an account. It is written to the file of --out, which only you can read, or printed to
standard output alone, so that it can be piped.

--verbs bounds what callers with the token may do; it gives no right that the account does not have.

With --secret-file it is the first token of a cluster: the command shows the bootstrap secret of the servers, which they
read from the file that their setting bootstrap-secret-file names, or that of "quorate access recover". It makes an
account, admin unless one is named, with the role root on the cluster, and a token for it. The secret is spent then.
Make accounts and tokens for daily work with this token, and keep it safe or let it end.`,
		Example: `  quorate token create --secret-file certs/bootstrap.secret --out admin.token
  quorate token create sim-ci --life 90d --out sim-ci.token
  quorate token create metrics --verbs metrics.read --description prometheus | vault kv put secret/quorate token=-`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeAccounts(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			account, changed := append(args, "")[0], cmd.Flags().Changed
			switch {
			case o.secretFile == "" && account == "":
				return cli.Usagef("ACCOUNT is missing; for the first token of a cluster, name the file with the secret of " +
					"its servers with --secret-file")
			case o.secretFile == "":
				return o.runAdd(cmd.Context(), account)
			case changed("life") || changed("description") || changed("verbs") || changed("reason"):
				return cli.Usagef("with --secret-file, the token has the life and the verbs that the servers give it")
			}
			return o.runBootstrap(cmd.Context(), account)
		},
	}
	o.addLife(cmd)
	cmd.Flags().StringVar(&o.description, "description", "", "free text for people")
	cmd.Flags().StringSliceVar(&o.verbs, "verbs", nil, "the `VERBS` that its callers may have at most (default: no bound)")
	cli.CompleteFlag(cmd, "verbs", verbNames()...)
	addReason(cmd, &o.reason)
	addOut(cmd, &o.out, "")
	cmd.Flags().StringVar(&o.secretFile, "secret-file", "",
		"get the first token of a cluster for the secret in this `FILE`")
	return cmd
}

func (o *tokenOptions) addLife(cmd *cobra.Command) {
	cli.SpanVar(cmd.Flags(), &o.life, "life", defaultLife, "how long it lives, such as 12h or 90d, at most 400d")
}

// checkLife refuses a token that ends at once.
func (o *tokenOptions) checkLife() error {
	if o.life < time.Millisecond {
		return cli.Usagef("--life must be more than 0")
	}
	return nil
}

func (o *tokenOptions) runAdd(ctx context.Context, account string) error {
	if err := o.checkLife(); err != nil {
		return err
	}
	if err := o.CheckSecretsAreEncrypted(); err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, err = makeToken(o.Env, o.out, false, func() (*adminv1.CreateTokenResponse, error) {
		return quorate.Access.CreateToken(ctx, &adminv1.CreateTokenRequest{
			Account: account, Description: o.description, LifeMs: o.life.Milliseconds(), Verbs: o.verbs, Reason: o.reason,
		})
	})
	return err
}

func newTokenRotateCmd(c *cli.Env) *cobra.Command {
	o := &tokenOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "rotate [ID]",
		Short: "Replace a token by a new one of the same account",
		Long: `Replace a token by a new one with the same account, description and verbs. The old one ends after --overlap,
so that its users have time to change. Without an id it is the token of this call, which needs no verb.

A file of --out is replaced as a whole when the new token is there. Clients that read it again, such as this program
and the Go client, need no restart, and leases stay with the account.`,
		Example: `  quorate token rotate --out "$QUORATE_TOKEN_FILE"
  quorate token rotate 0123456789abc --overlap 0s --out sim-ci.token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runRotate(cmd.Context(), append(args, "")[0])
		},
	}
	o.addLife(cmd)
	cli.SpanVar(cmd.Flags(), &o.overlap, "overlap", 24*time.Hour, "how long the old token stays valid, at most 7d")
	addReason(cmd, &o.reason)
	addOut(cmd, &o.out, "; a file that exists is replaced")
	return cmd
}

func (o *tokenOptions) runRotate(ctx context.Context, id string) error {
	if err := o.checkLife(); err != nil {
		return err
	}
	if err := o.CheckSecretsAreEncrypted(); err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := makeToken(o.Env, o.out, true, func() (*adminv1.RotateTokenResponse, error) {
		ms := o.overlap.Milliseconds()
		return quorate.Access.RotateToken(ctx, &adminv1.RotateTokenRequest{
			Id: id, OverlapMs: &ms, LifeMs: o.life.Milliseconds(), Reason: o.reason,
		})
	})
	if err == nil {
		o.Messagef("the old token ends in %s; to see both: quorate token list %s", cli.FormatSpan(o.overlap),
			answer.GetToken().GetAccount())
	}
	return err
}

func newTokenDeleteCmd(c *cli.Env) *cobra.Command {
	o := &tokenOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "End a token for good",
		Long: `End a token for good. Nothing that came with it is applied any more when the command has ended. It may be
repeated.`,
		Example: `  quorate token delete 0123456789abc --reason "it was in a log"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			quorate, ctx, cancel, err := o.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			answer, err := quorate.Access.RevokeToken(ctx,
				&adminv1.RevokeTokenRequest{Id: args[0], Reason: o.reason})
			if err != nil {
				return err
			}
			return o.Print(answer, lineOf("token %s was revoked", args[0]))
		},
	}
	addReason(cmd, &o.reason)
	return cmd
}

func newTokenListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:               "list ACCOUNT",
		Short:             "List the tokens of an account, without secrets, oldest first",
		Example:           "  quorate token list sim-ci\n  quorate token list sim-ci -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeAccounts(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			quorate, ctx, cancel, err := c.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			answer, err := quorate.Access.ListTokens(ctx,
				&adminv1.ListTokensRequest{Account: args[0], Read: c.ReadOptions()})
			if err != nil {
				return err
			}
			c.ReportAge(answer.GetRead())
			return c.Print(answer, func(p *cli.Page) error { return p.Table(tokenRows(answer.GetTokens(), time.Now())) })
		},
	}
}

func tokenRows(tokens []*adminv1.Token, now time.Time) [][]string {
	rows := [][]string{{"TOKEN", "STATE", "CREATED", "ENDS", "VERBS", "DESCRIPTION"}}
	for _, t := range tokens {
		state := "live"
		switch {
		case t.GetRevoked():
			state = "revoked"
		case t.GetEndsAt() != nil && !now.Before(t.GetEndsAt().AsTime()):
			state = "ended"
		}
		verbs := "all"
		if len(t.GetVerbs()) > 0 {
			verbs = listText(t.GetVerbs())
		}
		rows = append(rows, []string{
			t.GetId(), state, cli.FormatTime(t.GetCreatedAt()), cli.FormatTime(t.GetEndsAt()), verbs, t.GetDescription(),
		})
	}
	return rows
}
