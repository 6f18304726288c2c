package access

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type bootstrapOptions struct {
	*cli.Env
	secretFile, account, out string
}

func newBootstrapCmd(c *cli.Env) *cobra.Command {
	o := &bootstrapOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "bootstrap --secret-file FILE",
		Short: "Get the first token of a cluster, for the bootstrap secret of its servers",
		Long: `Get the first token of a cluster: show the bootstrap secret of its servers, which they read from the file
that their setting bootstrap-secret-file names. It makes an account with the role root on the cluster and a token for
it. The secret is spent then.

The token is written to the file of --out, which only you can read, or printed to standard output alone. It is shown
this once: make accounts and tokens for daily work with it, and keep it safe or let it end.`,
		Example: `  quorate access bootstrap --secret-file certs/bootstrap.secret --out admin.token
  export QUORATE_TOKEN_FILE=admin.token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runBootstrap(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.secretFile, "secret-file", "", "`FILE` with the bootstrap secret (required)")
	cmd.Flags().StringVar(&o.account, "account", "admin", "`NAME` of the account to make")
	addOut(cmd, &o.out, "")
	return cmd
}

// addOut adds the flag for the file of a new token.
func addOut(cmd *cobra.Command, out *string, more string) {
	cmd.Flags().StringVar(out, "out", "", "write the token to this new `FILE`, readable by you only, instead of standard "+
		"output"+more)
}

func (o *bootstrapOptions) runBootstrap(ctx context.Context) error {
	if o.secretFile == "" {
		return cli.Usagef("--secret-file is missing: name the file with the bootstrap secret, which \"quorate tls init\" " +
			"makes")
	}
	secret, err := readSecretFile(o.secretFile)
	if err != nil {
		return err
	}
	if err := o.CheckSecretsAreEncrypted(); err != nil {
		return err
	}
	o.Token.Unused = true // the secret is the credential
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, err = makeToken(o.Env, o.out, false, func() (*quoratev1.BootstrapResponse, error) {
		return quorate.Access.Bootstrap(ctx, &quoratev1.BootstrapRequest{Secret: secret, Account: o.account})
	})
	if err == nil && o.out != "" {
		o.Messagef("to use it:          export QUORATE_TOKEN_FILE=%s", cli.ShellWord(o.out))
		o.Messagef("to see who you are: quorate access whoami")
		o.Messagef("what comes next:    quorate access account add NAME; quorate access guard watch")
	}
	return err
}
