package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

type limitRequestOptions struct {
	*cli.Env
	reason string
}

func newRequestCreateCmd(c *cli.Env) *cobra.Command {
	o, open := limitRequestOptions{Env: c}, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "create TREE[:node/path] RESOURCE=LIMIT... --reason TEXT",
		Short: "Ask those who may set the limits of a node for other limits",
		Long: `Ask those who may set the limits of a node for other limits of it. The verb limits.request is needed at
the node. The request waits until it is approved, rejected or withdrawn, or until its time is over. Asking again for
the same shows the request that is open.

If the parent of the node has a rule auto-approve that allows the new limits, they are set at once. Otherwise the answer
says what the rule would allow, and people decide.

The cluster must be guarded or watching: in an open one callers cannot be told apart.`,
		Example: `  quorate request create cern:atlas/physics cores=120 --reason "the autumn campaign"
  quorate request create cern:atlas/physics cores=120 --reason "two days only" --for 2d`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.request(cmd.Context(), args[0], args[1:], open)
		},
	}
	cli.AddRequiredReasonFlag(cmd.Flags(), &o.reason)
	cli.SpanVar(cmd.Flags(), &open, "for", 14*24*time.Hour, "how long the request may wait, such as 12h or 14d")
	return cmd
}

func (o *limitRequestOptions) request(ctx context.Context, place string, pairs []string, open time.Duration) error {
	at, err := cli.ParsePlace(place)
	if err != nil {
		return err
	}
	if open < time.Millisecond {
		return cli.Usagef("--for: %s is too short; a request waits for 1ms to 90d", cli.FormatSpan(open))
	}
	if strings.TrimSpace(o.reason) == "" {
		return cli.Usagef("--reason is missing: say why the limits are needed")
	}
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		if err := o.LearnUnits(ctx, quorate); err != nil {
			return err
		}
		limits, err := parseLimits(o.Units, at, pairs)
		if err != nil {
			return err
		}
		answer, err := quorate.Requests.RequestLimits(ctx, &quoratev1beta1.RequestLimitsRequest{
			Tree: at.Tree, Node: at.Node, Limits: limits, Reason: o.reason,
			OpenMs: open.Milliseconds(),
		})
		if err != nil {
			return err
		}
		return o.Print(answer, func(p *cli.Page) error {
			o.drawRequest(p, answer.GetRequest())
			if why := answer.GetNotByRule(); why != "" {
				p.Linef("  not approved by the rule of the parent: %s", why)
			}
			return nil
		})
	})
}

func (o *limitRequestOptions) connected(
	ctx context.Context, fn func(context.Context, *client.Client) error,
) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return fn(ctx, quorate)
}

func newRequestListCmd(c *cli.Env) *cobra.Command {
	o := limitRequestOptions{Env: c}
	var all bool
	var at cli.Place
	var asker string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show requests for limits: your own, and those that you may decide about",
		Long: `Show requests for limits, oldest first: your own, and those that you may decide about; with the verb
audit.read on the cluster, all of them. Only open requests are shown unless --all is given, which also shows who closed
requests, and why. 1,000 closed requests are remembered; of the user with most of them the oldest is forgotten.`,
		Example: `  quorate request list
  quorate request list --at cern:atlas --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.list(cmd.Context(), at, asker, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show closed requests too")
	cli.PlaceVar(cmd.Flags(), &at, "only those for a node")
	cmd.Flags().StringVar(&asker, "asker", "", "only those of this user, such as account/anna")
	return cmd
}

func (o *limitRequestOptions) list(ctx context.Context, at cli.Place, asker string, all bool) error {
	request := &quoratev1beta1.ListRequestsRequest{
		Tree: at.Tree, Node: at.Node, Asker: asker, PageSize: 1000, Read: o.ReadOptions(),
	}
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		found, err := cli.AllPages(ctx, quorate.Requests.ListRequests, request)
		if err != nil {
			return err
		}
		o.ReportAge(found.GetRead())
		if !all {
			o.hideClosed(found)
		}
		o.LearnUnitsForTable(ctx, quorate)
		return o.Print(found, func(p *cli.Page) error {
			for _, r := range found.GetRequests() {
				o.drawRequest(p, r)
			}
			return nil
		})
	})
}

// hideClosed leaves only open requests, and tells people that there are others: a user whose request is not listed
// any more would not know that it was decided.
func (o *limitRequestOptions) hideClosed(found *quoratev1beta1.ListRequestsResponse) {
	all := len(found.GetRequests())
	found.Requests = slices.DeleteFunc(found.GetRequests(), func(r *quoratev1beta1.LimitRequest) bool {
		return r.GetState() != quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN
	})
	if closed := all - len(found.GetRequests()); closed > 0 && o.IsTable() {
		o.Messagef("closed requests: %d; to see who closed them and why: quorate request list --all", closed)
	}
}

func newRequestApproveCmd(c *cli.Env) *cobra.Command {
	o := limitRequestOptions{Env: c}
	var digest string
	var dry bool
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a request for limits; the last approval sets them",
		Long: `Approve a request for limits, and show what is approved. You must be allowed to set the limits yourself, and
must not be the one who asked. The last approval that the tree wants sets the limits. If they do not fit any more, the
request becomes stale.

The command approves the request as it is now. With --digest it approves only what was shown with that digest, by
"quorate request list -o json".`,
		Example: `  quorate request approve 12 --dry-run
  quorate request approve 12`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.approve(cmd.Context(), args[0], digest, dry)
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "refuse unless the request still has this digest")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only report what would change and what would be refused")
	return cmd
}

func (o *limitRequestOptions) approve(ctx context.Context, id, digest string, dry bool) error {
	number, err := parseRequestID(id)
	if err != nil {
		return err
	}
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		if digest == "" {
			if digest, err = o.shownDigest(ctx, quorate, number); err != nil {
				return err
			}
		}
		answer, err := quorate.Requests.ApproveRequest(ctx, &quoratev1beta1.ApproveRequestRequest{
			Id: number, Digest: digest, DryRun: dry,
		})
		if err != nil {
			return err
		}
		o.LearnUnitsForTable(ctx, quorate)
		if answer.GetResult() != nil {
			printSummary(o.Env, answer, dry)
		}
		return o.Print(answer, func(p *cli.Page) error {
			o.drawRequest(p, answer.GetRequest())
			drawResult(o.Units, p, answer.GetResult())
			return nil
		})
	})
}

// shownDigest is the digest of a request as it is now. A closed request has none; the server says so with the zero
// digest too.
func (o *limitRequestOptions) shownDigest(
	ctx context.Context, quorate *client.Client, number uint64,
) (string, error) {
	page, err := quorate.Requests.ListRequests(ctx, &quoratev1beta1.ListRequestsRequest{Id: number})
	if err != nil {
		return "", err
	}
	for _, r := range page.GetRequests() {
		if r.GetDigest() != "" {
			return r.GetDigest(), nil
		}
	}
	return "none", nil
}

func newRequestRejectCmd(c *cli.Env) *cobra.Command {
	o := limitRequestOptions{Env: c}
	cmd := &cobra.Command{
		Use:     "reject ID --reason TEXT",
		Short:   "Reject a request for limits of another user",
		Example: `  quorate request reject 12 --reason "the campaign was moved to spring"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(o.reason) == "" {
				return cli.Usagef("--reason is missing: say why; the one who asked can read it")
			}
			return o.closeRequest(cmd.Context(), args[0], true)
		},
	}
	cli.AddRequiredReasonFlag(cmd.Flags(), &o.reason)
	return cmd
}

func newRequestDeleteCmd(c *cli.Env) *cobra.Command {
	o := limitRequestOptions{Env: c}
	return &cobra.Command{
		Use:     "delete ID",
		Short:   "Withdraw your own request for limits",
		Example: `  quorate request delete 12`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.closeRequest(cmd.Context(), args[0], false)
		},
	}
}

func (o *limitRequestOptions) closeRequest(ctx context.Context, id string, reject bool) error {
	number, err := parseRequestID(id)
	if err != nil {
		return err
	}
	return o.connected(ctx, func(ctx context.Context, quorate *client.Client) error {
		var answer interface {
			proto.Message
			GetRequest() *quoratev1beta1.LimitRequest
		}
		if reject {
			answer, err = quorate.Requests.RejectRequest(ctx,
				&quoratev1beta1.RejectRequestRequest{Id: number, Reason: o.reason})
		} else {
			answer, err = quorate.Requests.WithdrawRequest(ctx, &quoratev1beta1.WithdrawRequestRequest{Id: number})
		}
		if err != nil {
			return err
		}
		o.LearnUnitsForTable(ctx, quorate)
		return o.Print(answer, func(p *cli.Page) error {
			o.drawRequest(p, answer.GetRequest())
			return nil
		})
	})
}

func parseRequestID(text string) (uint64, error) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 {
		return 0, cli.Usagef("%q is not the id of a request: use a number from quorate request list", text)
	}
	return number, nil
}

func (o *limitRequestOptions) drawRequest(p *cli.Page, r *quoratev1beta1.LimitRequest) {
	at := cli.PlaceOf(r.GetTree(), r.GetNode())
	state := strings.ToLower(strings.TrimPrefix(r.GetState().String(), "LIMIT_REQUEST_STATE_"))
	p.Linef("request %d  %s  %s  by %s: %s", r.GetId(), state, at, r.GetAsker(), r.GetReason())
	for _, resource := range slices.Sorted(maps.Keys(r.GetLimits())) {
		unit := o.Units[at.Tree][resource]
		text := resource + ": "
		if present := r.GetPresent()[resource]; present != nil {
			text += limitText(present, unit) + " -> "
		}
		p.Linef("  %s%s", text, limitText(r.GetLimits()[resource], unit))
	}
	if r.GetState() == quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN {
		p.Linef("  approvals: %d of %d%s; ends %s", len(r.GetApprovals()), r.GetApprovalsNeeded(), approvers(r),
			cli.FormatTime(r.GetEndsAt()))
		return
	}
	end := "closed " + cli.FormatTime(r.GetClosedAt())
	if r.GetClosedBy() != "" {
		end += " by " + r.GetClosedBy()
	}
	if r.GetRevision() != 0 {
		end += fmt.Sprintf(" in revision %d", r.GetRevision())
	}
	if r.GetClosedReason() != "" {
		end += ": " + r.GetClosedReason()
	}
	p.Linef("  %s", end)
}

// limitText writes a limit, also one that is unset.
func limitText(limit *quoratev1.Limit, unit quoratev1.Unit) string {
	if limit.GetUnset() {
		return "unset"
	}
	return manifest.FormatLimit(limit, unit)
}

func approvers(r *quoratev1beta1.LimitRequest) string {
	var names []string
	for _, a := range r.GetApprovals() {
		names = append(names, a.GetUser())
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}
