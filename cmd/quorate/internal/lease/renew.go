package lease

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

type renewOptions struct {
	*cli.Env
	fence uint64
	ttl   time.Duration
	data  []string
}

func newRenewCmd(c *cli.Env) *cobra.Command {
	o := &renewOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "renew ID",
		Short: "Renew a lease, or keep a request in the queue",
		Long: `Extend a lease by its TTL, counted from now, or keep a request in the queue. A lease that was not
renewed in time has expired and cannot be renewed. With --fence the lease is renewed only if it still has that
fence, which protects a lease that was granted to another holder meanwhile. "quorate lease run" renews by itself.`,
		Example: `  quorate renew job-4
  quorate renew job-4 --fence 17 --ttl 30m --data progress=80%`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runRenew(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.fence, "fence", 0, "fence that it must have (default: any)")
	cli.SpanVar(flags, &o.ttl, "ttl", 0, "new TTL (default: unchanged)")
	flags.StringArrayVar(&o.data, "data", nil, "`NAME=VALUE` to change in its data; an empty value removes the name")
	return cmd
}

func (o *renewOptions) runRenew(ctx context.Context, id string) error {
	if err := (&request.LeaseOptions{TTL: o.ttl}).CheckSpans(); err != nil {
		return err
	}
	data, err := request.ParsePairs("--data", o.data)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Renew(ctx, &quoratev1.RenewRequest{
		Id: id, Fence: o.fence, TtlMs: o.ttl.Milliseconds(), UserData: data,
	})
	if err != nil {
		return err
	}
	o.Messagef("renewed")
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(answer, func(p *cli.Page) error {
		return o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetWrite().GetLedgerTimeMs())
	})
}
