package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type debugOptions struct {
	*cli.Env
	local bool
}

func newDumpCmd(c *cli.Env) *cobra.Command {
	o := &debugOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "dump [FILE.tar.gz]",
		Short: "Collect a diagnostics bundle from all members",
		Long: `Collect diagnostics of all members into one archive: status, settings without secrets, build, metrics,
stacks of all goroutines, the heap, snapshots, and the last 2,000 lines of each log. It contains no allocations,
user data or passwords; it does contain names of nodes and addresses. The server that is asked asks the others;
manifest.json in the archive lists what could not be collected, and why.`,
		Example: "  quorate cluster dump\n  quorate cluster dump --local n1.tar.gz",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "quorate-debug-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			if len(args) > 0 {
				file = args[0]
			}
			return o.runDebug(cmd.Context(), file)
		},
	}
	cmd.Flags().BoolVar(&o.local, "local", false, "only from the server that is asked")
	return cmd
}

func (o *debugOptions) runDebug(ctx context.Context, file string) (err error) {
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the archive cannot be written: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(file)) // an incomplete archive is useless
		}
	}()
	packed := newBundle(out, o.Build.Version)
	if err := o.collectBundle(limited, quorate, packed); err != nil {
		return err
	}
	if err := packed.closeArchive(); err != nil {
		return err
	}
	for _, m := range packed.manifest.Members {
		for _, missing := range m.Missing {
			o.Messagef("not collected: %s of %s: %s", missing.Name, m.ID, missing.Why)
		}
	}
	members := "members"
	if packed.manifest.countMembers() == 1 {
		members = "member"
	}
	o.Messagef("collected from %d %s into %s", packed.manifest.countMembers(), members, file)
	return nil
}

// collectBundle asks one server for the diagnostics of all members. It fails only if that server does not answer.
func (o *debugOptions) collectBundle(ctx context.Context, quorate *client.Client, to *bundle) error {
	status, err := quorate.Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
	if err != nil {
		return err
	}
	to.manifest.AskedServer, to.manifest.Cluster = status.GetServedBy(), status.GetClusterName()
	if err := to.putMessage("status.json", status); err != nil {
		return err
	}
	members := ownMember(status)
	if !o.local {
		list, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
		switch {
		case err != nil: // a node that serves nobody is the one to look into
			o.Messagef("the other members are not known: %s", cli.ErrorText(err))
		default:
			members = list.GetMembers()
			if err := to.putMessage("members.json", list); err != nil {
				return err
			}
		}
	}
	for _, m := range members {
		answer, failed := quorate.Debug.GetDiagnostics(ctx, &adminv1.GetDiagnosticsRequest{Member: m.GetId()})
		if err := to.putMember(m.GetId(), answer, failed); err != nil {
			return err
		}
	}
	return nil
}
