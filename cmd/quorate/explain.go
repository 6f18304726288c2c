package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type explainOptions struct {
	*cli
	requestOptions
	past string // the id of a request that was made; empty for a hypothetical one
	// described is true if any flag of a request was given.
	described bool
}

func newExplainCmd(c *cli) *cobra.Command {
	o := &explainOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "explain ID | explain --at TREE:node/path --amount RESOURCE=AMOUNT...",
		Short: "Say what would become of a request, or why one was denied, and what would help",
		Long: `Say what would become of a request, without carrying it out; it takes the flags of "quorate allocate". Or say how
a request was decided: an allocation that is held or has ended lately, or a denial that is still remembered.

A denial names every limit in the way, and the smallest change that would admit the request, as commands to paste:
either all limits to raise, or all allocations to release. A limit that no command sets stands behind a #, to be
changed in the configuration.

A denial is an answer here: the exit code is 0. For an exit code that tells, use "quorate allocate --dry-run".`,
		Example: `  quorate explain --at cern:atlas/physics --amount cores=25
  quorate explain --user ann --at cern:atlas/physics --amount cores=25 -o json
  quorate explain job-7`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.past = strings.Join(args, "")
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { o.described = o.described || f.Changed })
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *explainOptions) run(ctx context.Context) error {
	switch {
	case o.past != "" && o.described:
		return usagef("explain either the request %s, without flags of a request, or a new one with --at", o.past)
	case o.past == "" && len(o.claims.list) == 0:
		return usagef("say which request: its ID, or --at TREE:node/path --amount RESOURCE=AMOUNT")
	case o.past == "":
		if err := o.check(); err != nil {
			return err
		}
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	question, err := o.question(ctx, quorate)
	if err != nil {
		return err
	}
	answer, err := quorate.Allocations.Explain(ctx, question)
	if err != nil {
		return err
	}
	o.sayAge(answer.GetRead())
	return o.print(answer, func(p *page) error { return o.units.drawExplanation(p, answer) })
}

func (o *explainOptions) question(ctx context.Context, quorate *client.Client) (*quoratev1.ExplainRequest, error) {
	if o.past != "" {
		o.learnForTable(ctx, quorate)
		return &quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Id{Id: o.past}, Read: o.read()}, nil
	}
	request, err := o.message(ctx, o.cli, quorate)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Request{Request: request}, Read: o.read()}, nil
}

func (u units) drawExplanation(p *page, answer *quoratev1.ExplainResponse) error {
	decision := answer.GetDecision()
	switch {
	case answer.GetAllocation() != nil:
		return u.drawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs())
	case decision.GetOutcome() == quoratev1.Outcome_OUTCOME_GRANTED:
		p.line("it would be granted")
		drawPlacements(p, decision)
		return nil
	case answer.GetDecidedAt() != nil:
		p.line("denied at %s:", date(answer.GetDecidedAt()))
	default:
		p.line("it would be denied:")
	}
	for _, v := range decision.GetViolations() {
		p.line("  %s", u.violation(v))
	}
	if decision.GetNeverFits() {
		p.line("It is larger than a limit on its own: releasing others does not help.")
	}
	if answer.GetDecidedAt() != nil && decision.GetRemedy() == nil {
		p.line("By now it may fit, or be refused for another reason; ask again with --at to know.")
	}
	u.drawRemedy(p, decision.GetRemedy())
	return nil
}

// drawRemedy writes what would admit the request as commands.
func (u units) drawRemedy(p *page, remedy *quoratev1.Remedy) {
	heading := "It would be granted after all of:"
	if raises := remedy.GetRaises(); len(raises) > 0 {
		p.line("\n%s", heading)
		for _, r := range raises {
			p.line("  %s", u.raise(r))
		}
		heading = "Or after all of:"
	}
	if releases := remedy.GetReleases(); len(releases) > 0 {
		p.line("\n%s", heading)
		for _, id := range releases {
			p.line("  quorate release %s", shellWord(id))
		}
	}
}

// raise is the command that raises a limit, or a comment if there is none.
func (u units) raise(r *quoratev1.Raise) string {
	at := place{r.GetTree(), r.GetNode()}
	amount := func(n int64) string { return u.amount(r.GetTree(), r.GetResource(), n) }
	if r.GetUnconfigured() {
		return "# " + at.String() + "  " + limited(r) + ": " + amount(r.GetFrom()) + " -> " + amount(r.GetTo()) + ", a node to be configured first"
	}
	if r.GetKind() == quoratev1.ViolationKind_VIOLATION_KIND_UNSPECIFIED &&
		r.GetHolderKind() == quoratev1.HolderKind_HOLDER_KIND_UNSPECIFIED {
		if r.GetGoverned() && len(r.GetSetters()) == 0 {
			return "# " + at.String() + "  " + limited(r) + ": " + amount(r.GetFrom()) + " -> " + amount(r.GetTo()) +
				", which nobody may set: an admin of the tree can name admins above the node"
		}
		return "quorate limits set " + at.String() + " " + r.GetResource() + "=" + amount(r.GetTo()) + permission(r)
	}
	return "# " + at.String() + "  " + limited(r) + ": " + amount(r.GetFrom()) + " -> " + amount(r.GetTo())
}

// permission are the flags without which a tree refuses the change: who asks, and why.
func permission(r *quoratev1.Raise) string {
	flags := ""
	if setters := r.GetSetters(); len(setters) > 0 {
		flags += " --actor=" + quotedWord(setters[0])
	}
	if r.GetNeedsReason() {
		flags += " --reason='room for a denied request'"
	}
	return flags
}
