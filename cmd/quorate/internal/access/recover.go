//go:build unix

package access

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/server/recovery"
)

type recoverOptions struct {
	*cli.Env
	dataDir, out string
}

type preparedRecovery struct {
	Secret     string `json:"secret,omitempty"` // empty if it is in a file
	Recoveries uint64 `json:"recoveries"`       // for which it was made
}

func newRecoverCmd(c *cli.Env) *cobra.Command {
	o := &recoverOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "recover --data-dir FOLDER",
		Short: "Prepare the way back into a cluster, on the machine of the leader",
		Long: `Prepare the way back into a cluster whose administrators cannot log in: on the machine of the leader, as the
user of its server, which keeps running. It makes a secret, and a file with the hash of it in the data folder. While
this server leads, it accepts the secret for one "quorate token create", which makes a token of an account with the
role root, as for a new cluster. "quorate status" shows which server leads.

The secret is written to the file of --out, which only you can read, or printed to standard output alone. When it was
used, what was prepared before is spent on all members, and all of them log that access was recovered. Preparing again
replaces what was prepared here.`,
		Example: `  quorate access recover --data-dir /var/lib/quorate --out recovery.secret
  quorate token create --secret-file recovery.secret --out admin.token`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.runRecover() },
	}
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", "data `FOLDER` of the server (required)")
	cmd.Flags().StringVar(&o.out, "out", "", "write the secret to this new `FILE`, readable by you only, instead of "+
		"standard output")
	return cmd
}

func (o *recoverOptions) runRecover() error {
	if o.dataDir == "" {
		return cli.Usagef("--data-dir is missing: name the data folder of the server on this machine")
	}
	file, err := openSecretFile(o.out, false)
	if err != nil {
		return err
	}
	secret, note, err := recovery.Folder(o.dataDir).Prepare()
	if err != nil {
		file.discard()
		return err
	}
	done := preparedRecovery{Secret: secret, Recoveries: note.Recoveries}
	if file == nil {
		return o.PrintValue(done, lineOf("%s", secret))
	}
	if err := file.write(secret); err != nil {
		file.discard()
		return err
	}
	o.Messagef("to use it while this server leads: quorate token create --secret-file %s --out admin.token",
		cli.ShellWord(o.out))
	if done.Secret = ""; o.IsTable() {
		return nil
	}
	return o.PrintValue(done, lineOf(""))
}
