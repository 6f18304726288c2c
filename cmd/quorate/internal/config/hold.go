package config

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/quota"
)

type holdOptions struct {
	changeOptions
	at                string
	deny, drain, wait bool
	span              time.Duration // until the hold ends; 0 without an end, or with until
	grace             time.Duration // of the leases at a node that is drained
	until             string
}

func newCordonCmd(c *cli.Env) *cobra.Command {
	o := &holdOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "cordon TREE[:node/path]",
		Short: "Admit nothing new at a node and below it",
		Long: `Cordon a node: nothing new is admitted at the node and everywhere below it, in no mode, and no allocation
there can grow. Renewals, releases and confirmations go on, and limits stay as they are. Requests that wait keep their
place in the queue; with --deny, those that come during the hold are denied instead. The hold ends with "quorate node
uncordon", or by itself after --for or at --until, which becomes a span by the civil time of the cluster. It moves with
its node; manifests and rollbacks leave it as it is.`,
		Example: `  quorate node cordon cern:atlas --reason "new cables"
  quorate node cordon cern:atlas --for 2h --deny
  quorate node cordon cern:atlas --until 2026-11-30T08:00:00Z --reason weekend`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at = args[0]
			return o.runHold(cmd.Context())
		},
	}
	o.addHoldFlags(cmd)
	return cmd
}

func newDrainCmd(c *cli.Env) *cobra.Command {
	o := &holdOptions{changeOptions: changeOptions{Env: c}, drain: true}
	cmd := &cobra.Command{
		Use:   "drain TREE[:node/path]",
		Short: "Cordon a node, and revoke the leases at it and below it",
		Long: `Cordon a node as "quorate node cordon" does, and revoke the leases at the node and everywhere below it:
each ends after --grace at the latest, whatever its holder renews. Allocations that are not leases stay; release them,
or wait until their holders do. "quorate node list --cordoned" shows what is left, and an event tells when nothing is
("quorate event list --kind drained"). With --until-empty the command ends then; --timeout says how long it waits, which
is the grace and two minutes otherwise. "quorate node uncordon" ends the hold, but takes no revocation back.`,
		Example: `  quorate node drain cern:atlas --grace 10m --reason "move to the new hall"
  quorate node drain cern:atlas --grace 10m --until-empty --timeout 1h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at = args[0]
			return o.runDrain(cmd.Context(), cmd.Flags().Changed("timeout"))
		},
	}
	o.addHoldFlags(cmd)
	cli.SpanVar(cmd.Flags(), &o.grace, "grace", 0, "how long leases last at most, up to 1h (default: not at all)")
	cmd.Flags().BoolVar(&o.wait, "until-empty", false, "wait until nothing is held at the node and below it")
	return cmd
}

func (o *holdOptions) addHoldFlags(cmd *cobra.Command) {
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.deny, "deny", false, "deny requests that would wait for the end of the hold")
	cli.SpanVar(cmd.Flags(), &o.span, "for", 0, "end the hold after this time, such as 2h or 30d (default: with uncordon)")
	cmd.Flags().StringVar(&o.until, "until", "", "end the hold at this `TIME`, such as 2026-11-30T08:00:00Z, or "+
		"2026-11-30T08:00 in the time zone of this machine")
}

func newUncordonCmd(c *cli.Env) *cobra.Command {
	o := &holdOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "uncordon TREE[:node/path]",
		Short: "End the hold of a node",
		Long: `End the hold of a node, also that of a drain, and grant what waited for it, in the order of the queue. Leases
that a drain has revoked stay revoked.`,
		Example: "  quorate node uncordon cern:atlas",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at = args[0]
			return o.runResume(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *holdOptions) newRequest() (*adminv1.CordonNodeRequest, error) {
	if o.span != 0 && o.until != "" {
		return nil, cli.Usagef("--for and --until exclude each other: say how long the hold lasts, or when it ends")
	}
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return nil, err
	}
	r := &adminv1.CordonNodeRequest{
		Tree: at.Tree, Node: at.Node, Deny: o.deny, Drain: o.drain, ForMs: o.span.Milliseconds(),
		DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		GraceMs: o.grace.Milliseconds(),
	}
	return r, nil
}

func (o *holdOptions) runHold(ctx context.Context) error {
	request, err := o.newRequest()
	if err != nil {
		return err
	}
	until, err := parseTime("--until", o.until)
	if err != nil {
		return err
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		if until != nil {
			if request.ForMs, err = spanUntil(ctx, quorate, until.AsTime()); err != nil {
				return nil, err
			}
		}
		return quorate.Cordons.CordonNode(ctx, request)
	})
}

// spanUntil is the time from now until an instant, by the civil time of the cluster and not by the clock of this
// machine, in milliseconds, rounded up to a second.
func spanUntil(ctx context.Context, quorate *client.Client, until time.Time) (int64, error) {
	status, err := quorate.Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
	if err != nil {
		return 0, err
	}
	if status.GetCivilTimeMs() == 0 {
		return 0, errors.New("--until: the server shows no civil time: the members have not agreed on it yet, or you have " +
			"no right to cluster.read; wait until \"quorate status\" shows it, or use --for")
	}
	now := time.UnixMilli(status.GetCivilTimeMs())
	left := (until.Sub(now) + time.Second - 1).Truncate(time.Second)
	switch span := left.Milliseconds(); {
	case !until.After(now):
		return 0, cli.Usagef("--until: %s is not later than the civil time of the cluster, %s; name a later time",
			until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case span > int64(quota.MaxHold):
		return 0, cli.Usagef("--until: %s is more than %s after the civil time of the cluster, %s; name an earlier time, "+
			"or leave it out and use quorate node uncordon", until.UTC().Format(time.RFC3339),
			cli.FormatSpan(time.Duration(quota.MaxHold)*time.Millisecond), now.UTC().Format(time.RFC3339))
	default:
		return span, nil
	}
}

func (o *holdOptions) runResume(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return quorate.Cordons.UncordonNode(ctx, &adminv1.UncordonNodeRequest{
			Tree: at.Tree, Node: at.Node,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}

func (o *holdOptions) runDrain(ctx context.Context, hasTimeout bool) error {
	if err := o.runHold(ctx); err != nil || !o.wait || o.dryRun {
		return err
	}
	if !hasTimeout {
		o.Timeout = o.grace + drainTimeout
	}
	return o.waitDrained(ctx)
}
