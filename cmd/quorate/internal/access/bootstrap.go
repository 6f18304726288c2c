package access

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// addOut adds the flag for the file of a new token.
func addOut(cmd *cobra.Command, out *string, more string) {
	cmd.Flags().StringVar(out, "out", "", "write the token to this new `FILE`, readable by you only, instead of standard "+
		"output"+more)
}

// runBootstrap gets the first token of a cluster for the secret of its servers.
func (o *tokenOptions) runBootstrap(ctx context.Context, account string) error {
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
	_, err = makeToken(o.Env, o.out, false, func() (*adminv1.BootstrapResponse, error) {
		return quorate.Access.Bootstrap(ctx, &adminv1.BootstrapRequest{Secret: secret, Account: cmp.Or(account, "admin")})
	})
	if err == nil && o.out != "" {
		o.Messagef("to use it:          export QUORATE_TOKEN_FILE=%s", cli.ShellWord(o.out))
		o.Messagef("to see who you are: quorate access whoami")
		o.Messagef("what comes next:    quorate account create NAME; quorate access set watching")
	}
	return err
}
