package operate

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type webhookOptions struct {
	*cli.Env
	reason string
}

func newWebhookListCmd(c *cli.Env) *cobra.Command {
	o := &webhookOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show where events are delivered and how far, and change it",
		Long: `Show the webhooks: HTTP receivers to which the cluster posts its events, one after the other, signed, at
least once, also over a change of the leader. BEHIND counts the events that are still to deliver or to skip.

Nothing is delivered unless the servers allow the host of the receiver in their setting webhook-hosts and have the
secret in their webhook-secrets-dir. See docs/webhooks.md. The verb audit.read on the cluster is needed to see all
webhooks, access.manage to change them. Who has bindings.grant at a node sees and changes webhooks of that node, which
deliver what their owner may see.`,
		Example: `  quorate webhook list
  quorate webhook set pager https://hooks.example.org/quorate --secret pager --event allocation.revoked
  quorate webhook resume pager`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	return cmd
}

func (o *webhookOptions) connected(ctx context.Context, fn func(context.Context, *client.Client) error) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return fn(ctx, quorate)
}

func (o *webhookOptions) list(ctx context.Context) error {
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		answer, err := quorate.Webhooks.ListWebhooks(ctx, &quoratev1beta1.ListWebhooksRequest{Read: o.ReadOptions()})
		if err != nil {
			return err
		}
		o.ReportAge(answer.GetRead())
		return o.Print(answer, func(p *cli.Page) error { return p.Table(webhookRows(answer.GetWebhooks())) })
	})
}

func webhookRows(list []*quoratev1beta1.Webhook) [][]string {
	rows := [][]string{{
		"NAME", "URL", "OWNER", "STATE", "CURSOR", "BEHIND", "DELIVERED", "GAPS", "FAILING SINCE", "LAST ERROR",
	}}
	for _, w := range list {
		behind := strconv.FormatInt(w.GetBehind(), 10)
		if w.GetForgotten() {
			behind = "forgotten"
		}
		since := ""
		if w.GetFailingSinceAt() != nil {
			since = cli.FormatTime(w.GetFailingSinceAt())
		}
		rows = append(rows, []string{
			w.GetSpec().GetName(), w.GetSpec().GetUrl(), cmp.Or(w.GetOwner(), "cluster"), webhookState(w),
			formatPosition(w.GetCursor()), behind,
			strconv.FormatUint(w.GetDelivered(), 10), strconv.FormatUint(w.GetGaps(), 10), since, w.GetLastError(),
		})
	}
	return rows
}

func webhookState(w *quoratev1beta1.Webhook) string {
	return strings.ToLower(strings.TrimPrefix(w.GetState().String(), "WEBHOOK_STATE_"))
}

func formatPosition(p *quoratev1beta1.EventPosition) string {
	if p.GetNumber() == 0 {
		return strconv.FormatUint(p.GetIndex(), 10)
	}
	return fmt.Sprintf("%d.%d", p.GetIndex(), p.GetNumber())
}

func parsePosition(text string) (*quoratev1beta1.EventPosition, error) {
	index, number, hasNumber := strings.Cut(text, ".")
	i, err := strconv.ParseUint(index, 10, 64)
	n := uint64(0)
	if err == nil && hasNumber {
		n, err = strconv.ParseUint(number, 10, 32)
	}
	if err != nil {
		return nil, cli.Usagef(
			"--after: %q is not a position: write INDEX or INDEX.NUMBER, as quorate webhook list shows it", text)
	}
	return &quoratev1beta1.EventPosition{Index: i, Number: uint32(n)}, nil
}

func newWebhookSetCmd(c *cli.Env) *cobra.Command {
	o, spec := &webhookOptions{Env: c}, &quoratev1beta1.WebhookSpec{}
	var at cli.Place
	var retry time.Duration
	cmd := &cobra.Command{
		Use:   "set NAME URL --secret SECRET",
		Short: "Add a webhook, or replace the settings of one",
		Long: `Add a webhook, which gets the events from now on, or replace all settings of the one with this name, which
continues where it is. SECRET is the name of a file in the webhook-secrets-dir of each server. Administrators of a node
name it with --at, and a secret whose name begins with the tree and a dot.

Events have the types allocation.waiting, .granted, .confirmed, .revoked, .restored, .shrunk, .resized and .ended, and
limit.crossed, limit.cleared, limit.scheduled, limit.started, limit.ending, limit.ended, limit.skipped, node.drained and
configuration.changed.`,
		Example: `  quorate webhook set pager https://hooks.example.org/quorate --secret pager \
    --event allocation.revoked --event allocation.ended
  quorate webhook set atlas https://atlas.example.org/quota --secret cern.atlas --at cern:atlas --retry-for 2d`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec.Name, spec.Url = args[0], args[1]
			return o.set(cmd.Context(), spec, at, retry)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Secret, "secret", "", "name of the secret that signs (required)")
	flags.StringSliceVar(&spec.Types, "event", nil,
		"deliver only `EVENT`, such as allocation.revoked; may be repeated (default: all)")
	cli.PlaceVar(flags, &at, "only allocations with a claim")
	cli.SpanVar(flags, &retry, "retry-for", 24*time.Hour, "how long the delivery of one event is tried, 1s to 7d")
	cli.AddReasonFlag(flags, &o.reason)
	return cmd
}

func (o *webhookOptions) set(
	ctx context.Context, spec *quoratev1beta1.WebhookSpec, at cli.Place, retry time.Duration,
) error {
	if spec.GetSecret() == "" {
		return cli.Usagef("--secret is missing: name a file in the webhook-secrets-dir of the servers")
	}
	spec.Tree, spec.Node = at.Tree, at.Node
	if retry < time.Second {
		return cli.Usagef("--retry-for: %s is too short; a delivery is tried for 1s to 7d", cli.FormatSpan(retry))
	}
	spec.RetryForMs = retry.Milliseconds()
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		answer, err := quorate.Webhooks.SetWebhook(ctx, &quoratev1beta1.SetWebhookRequest{Webhook: spec, Reason: o.reason})
		if err != nil {
			return err
		}
		return o.Print(answer, func(p *cli.Page) error {
			p.Linef("webhook %s is %s, and delivers to %s what happens after %s", spec.GetName(),
				webhookState(answer.GetWebhook()), spec.GetUrl(), formatPosition(answer.GetWebhook().GetCursor()))
			return nil
		})
	})
}

func newWebhookDeleteCmd(c *cli.Env) *cobra.Command {
	o := &webhookOptions{Env: c}
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Remove a webhook; what it has not delivered is not delivered any more",
		Example: `  quorate webhook delete pager`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, quorate *client.Client) error {
				answer, err := quorate.Webhooks.RemoveWebhook(ctx,
					&quoratev1beta1.RemoveWebhookRequest{Name: args[0], Reason: o.reason})
				if err != nil {
					return err
				}
				return o.Print(answer, func(p *cli.Page) error {
					p.Linef("webhook %s is removed; it has delivered %d events", args[0], answer.GetWebhook().GetDelivered())
					return nil
				})
			})
		},
	}
	cli.AddReasonFlag(cmd.Flags(), &o.reason)
	return cmd
}

func newWebhookResumeCmd(c *cli.Env) *cobra.Command {
	o := &webhookOptions{Env: c}
	request := &quoratev1beta1.ResumeWebhookRequest{}
	var after string
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Let a dead webhook deliver again",
		Long: `Let a dead webhook deliver again, from the event that it could not deliver. With --after it continues behind
another position: to skip an event that the receiver refuses, or to deliver events again. With --from-now it skips
everything up to now.`,
		Example: `  quorate webhook resume pager
  quorate webhook resume pager --after 4711:2
  quorate webhook resume pager --from-now`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Name, request.Reason = args[0], o.reason
			if after != "" {
				position, err := parsePosition(after)
				if err != nil {
					return err
				}
				request.After = position
			}
			return o.resume(cmd.Context(), request)
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "continue behind this position, `INDEX` or INDEX.NUMBER")
	cmd.Flags().BoolVar(&request.FromNow, "from-now", false, "skip all events up to now")
	cmd.MarkFlagsMutuallyExclusive("after", "from-now")
	cli.AddReasonFlag(cmd.Flags(), &o.reason)
	return cmd
}

func (o *webhookOptions) resume(ctx context.Context, request *quoratev1beta1.ResumeWebhookRequest) error {
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		answer, err := quorate.Webhooks.ResumeWebhook(ctx, request)
		if err != nil {
			return err
		}
		return o.Print(answer, func(p *cli.Page) error {
			p.Linef("webhook %s is %s, and continues after %s", request.GetName(), webhookState(answer.GetWebhook()),
				formatPosition(answer.GetWebhook().GetCursor()))
			return nil
		})
	})
}
