package access

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// refusedKinds are the words for what a refusal names.
var refusedKinds = []struct {
	word string
	kind adminv1.RefusedKind
}{
	{"token", adminv1.RefusedKind_REFUSED_KIND_TOKEN},
	{"user", adminv1.RefusedKind_REFUSED_KIND_USER},
	{"certificate", adminv1.RefusedKind_REFUSED_KIND_CERTIFICATE},
	{"jti", adminv1.RefusedKind_REFUSED_KIND_JTI},
}

func kindWords() []string {
	words := make([]string, 0, len(refusedKinds))
	for _, k := range refusedKinds {
		words = append(words, k.word)
	}
	return words
}

// refuseOptions are the flags that name a credential, and for how long it is refused.
type refuseOptions struct {
	*cli.Env
	issuer, until, issuedBefore, reason string
}

const refusedHelp = `token        a token of an account, by its id
user         a user, ISSUER/NAME, with all its credentials
certificate  a certificate, by its SHA-256 in lower-case hexadecimal
jti          one JSON Web Token of an issuer, by its claim "jti"; name the issuer with --issuer`

func newRefusalCreateCmd(c *cli.Env) *cobra.Command {
	o := &refuseOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "create {token|user|certificate|jti} NAME --until TIME --reason TEXT",
		Short: "Refuse credentials that are valid otherwise, until a time",
		Long: `Refuse credentials that are valid otherwise, until a time. Nothing that came with them is applied any more
when the command has ended. Refusing the same name again replaces the refusal.

` + refusedHelp,
		Example: `  quorate refusal create user github/456789 --until 30d --reason "a leaked runner"
  quorate refusal create jti 6f1c --issuer github --until 2h --reason "printed in a log"
  quorate refusal create user corp/ann --issued-before 2026-11-26T12:00:00Z --until 400d --reason "a stolen laptop"`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeKinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runRefuse(cmd.Context(), args) },
	}
	o.addIssuer(cmd)
	cmd.Flags().StringVar(&o.until, "until", "", "when the refusal ends: a time, or a span such as 30d from now; at most "+
		"ten years ahead (required)")
	cmd.Flags().StringVar(&o.issuedBefore, "issued-before", "", "of a user, refuse only what was issued before this time")
	cli.AddRequiredReasonFlag(cmd.Flags(), &o.reason)
	return cmd
}

func (o *refuseOptions) addIssuer(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.issuer, "issuer", "", "`NAME` of the issuer of a jti")
}

func completeKinds(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return kindWords(), cobra.ShellCompDirectiveNoFileComp
}

// parseKind also checks the issuer that belongs to the kind.
func (o *refuseOptions) parseKind(word string) (adminv1.RefusedKind, error) {
	for _, k := range refusedKinds {
		if k.word != word {
			continue
		}
		if (o.issuer != "") != (word == "jti") {
			return 0, cli.Usagef("--issuer belongs to a jti, which needs it")
		}
		return k.kind, nil
	}
	return 0, cli.Usagef("%q cannot be refused: write one of %s", word, strings.Join(kindWords(), ", "))
}

func (o *refuseOptions) runRefuse(ctx context.Context, args []string) error {
	kind, err := o.parseKind(args[0])
	if err != nil {
		return err
	}
	if o.until == "" || o.reason == "" {
		return cli.Usagef("--until and --reason are required: a refusal has an end, and people must know why it is there")
	}
	refused := &adminv1.RefusedCredential{Kind: kind, Issuer: o.issuer, Name: args[1], Reason: o.reason}
	now := time.Now()
	until, err := parseTime("--until", o.until, now)
	if err != nil {
		return err
	}
	refused.EndsAt = timestamppb.New(until)
	if o.issuedBefore != "" {
		before, err := parseTime("--issued-before", o.issuedBefore, now)
		if err != nil {
			return err
		}
		refused.IssueCutoffAt = timestamppb.New(before)
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Access.RefuseCredential(ctx, &adminv1.RefuseCredentialRequest{Refused: refused})
	if err != nil {
		return err
	}
	return o.Print(answer, lineOf("%s %s is refused until %s", args[0], args[1], cli.FormatTime(refused.GetEndsAt())))
}

func newRefusalDeleteCmd(c *cli.Env) *cobra.Command {
	o := &refuseOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "delete {token|user|certificate|jti} NAME",
		Short: "Remove a refusal",
		Long: `Remove a refusal, named as in "quorate refusal list". It gives no right, and does not bring back a
token that was revoked.`,
		Example:           "  quorate refusal delete user github/456789 --reason \"the runner is clean\"",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := o.parseKind(args[0])
			if err != nil {
				return err
			}
			quorate, ctx, cancel, err := o.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			answer, err := quorate.Access.AllowCredential(ctx, &adminv1.AllowCredentialRequest{
				Kind: kind, Issuer: o.issuer, Name: args[1], Reason: o.reason,
			})
			if err != nil {
				return err
			}
			return o.Print(answer, lineOf("%s %s is no longer refused", args[0], args[1]))
		},
	}
	o.addIssuer(cmd)
	addReason(cmd, &o.reason)
	return cmd
}

func newRefusalListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the credentials and users that are refused",
		Example: "  quorate refusal list\n  quorate refusal list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quorate, ctx, cancel, err := c.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			answer, err := cli.AllPages(ctx, quorate.Access.ListRefusedCredentials,
				&adminv1.ListRefusedCredentialsRequest{Read: c.ReadOptions()})
			if err != nil {
				return err
			}
			c.ReportAge(answer.GetRead())
			return c.Print(answer, func(p *cli.Page) error { return p.Table(refusedRows(answer.GetRefused())) })
		},
	}
}

func refusedRows(refused []*adminv1.RefusedCredential) [][]string {
	rows := [][]string{{"WHAT", "NAME", "ISSUER", "ISSUED BEFORE", "UNTIL", "REASON"}}
	for _, r := range refused {
		word := strings.ToLower(strings.TrimPrefix(r.GetKind().String(), "REFUSED_KIND_"))
		rows = append(rows, []string{
			word, r.GetName(), r.GetIssuer(), cli.FormatTime(r.GetIssueCutoffAt()), cli.FormatTime(r.GetEndsAt()),
			r.GetReason(),
		})
	}
	return rows
}
