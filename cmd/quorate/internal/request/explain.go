package request

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type explainOptions struct {
	*cli.Env
	Options
	past string // the id of an earlier request; empty for a hypothetical one
	// described is true if any flag describes a request.
	described bool
	certainBy bool
	levels    bool
}

func newExplainCmd(c *cli.Env) *cobra.Command {
	o := &explainOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "explain ID | explain --at TREE[:node/path] --amount RESOURCE=AMOUNT...",
		Short: "Explain a decision: what blocks a request, and what would help",
		Long: `Explain what a request would lead to, without carrying it out; explain takes the flags of "quorate
allocate". Or explain how a request was decided: an allocation that is held or has recently ended, or a denial that
is still remembered.

A denial names every limit that blocks the request, and the smallest change that would admit it, as commands to paste:
either all limits to raise, or all allocations to release. It also names who holds what counts against them, by node,
user and owner, the 20 largest allocations, and the requests that wait for the same and come first, as far as you may
see them. A limit that no command can set, such as one of borrowing, follows a #; change it in the configuration.

With --levels it also lists every limit that the request passes, not only those that stop it: what is used without the
request, what the request asks for there, and what is left.

A denial is a successful explanation: the exit code is 0. For an exit code that tells them apart, use "quorate allocate
--dry-run".`,
		Example: `  quorate explain --at cern:atlas/physics --amount cores=25
  quorate explain --user ann --at cern:atlas/physics --amount cores=25 -o json
  quorate explain --at cern:atlas/physics --amount cores=25 --levels
  quorate explain job-7
  quorate explain job-7 --certain-by`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.past = strings.Join(args, "")
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				o.described = o.described || f.Changed && f.Name != certainByFlag && f.Name != levelsFlag
			})
			return o.runExplain(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.certainBy, certainByFlag, false, "predict when a waiting request is granted at the latest")
	cmd.Flags().BoolVar(&o.levels, levelsFlag, false, "list every limit that a new request passes, with its numbers")
	return cmd
}

const (
	certainByFlag = "certain-by"
	levelsFlag    = "levels"
)

func (o *explainOptions) runExplain(ctx context.Context) error {
	switch {
	case o.past != "" && o.described:
		return cli.Usagef(
			"explain either the request %s, without flags that describe a request, or a new one with --at",
			o.past)
	case o.past == "" && len(o.Claims.List) == 0:
		return cli.Usagef("name a request: its ID, or --at TREE[:node/path] --amount RESOURCE=AMOUNT")
	case o.past == "" && o.certainBy:
		return cli.Usagef("--certain-by is for a request that waits; name its ID")
	case o.past != "" && o.levels:
		return cli.Usagef("--levels is for a new request; describe it with --at")
	case o.past == "":
		if err := o.CheckClaims(); err != nil {
			return err
		}
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	question, err := o.buildQuestion(ctx, quorate)
	if err != nil {
		return err
	}
	answer, err := quorate.Allocations.Explain(ctx, question)
	if err != nil {
		return err
	}
	o.ReportAge(answer.GetRead())
	return o.Print(answer, func(p *cli.Page) error {
		if err := drawExplanation(o.Units, p, answer); err != nil {
			return err
		}
		if o.certainBy {
			drawCertainBy(p, answer)
		}
		if o.levels {
			return drawLevels(o.Units, p, answer)
		}
		return nil
	})
}

func (o *explainOptions) buildQuestion(ctx context.Context, quorate *client.Client) (*quoratev1.ExplainRequest, error) {
	if o.past != "" {
		o.LearnUnitsForTable(ctx, quorate)
		return &quoratev1.ExplainRequest{
			Question: &quoratev1.ExplainRequest_Id{Id: o.past}, Read: o.ReadOptions(), CertainBy: o.certainBy,
		}, nil
	}
	request, err := o.BuildMessage(ctx, o.Env, quorate)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ExplainRequest{
		Question: &quoratev1.ExplainRequest_Request{Request: request},
		Read:     o.ReadOptions(),
	}, nil
}

func drawExplanation(u cli.Units, p *cli.Page, answer *quoratev1.ExplainResponse) error {
	decision := answer.GetDecision()
	switch {
	case decision.GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING:
		if err := u.DrawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs()); err != nil {
			return err
		}
	case answer.GetAllocation() != nil:
		return u.DrawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs())
	case decision.GetOutcome() == quoratev1.Outcome_OUTCOME_GRANTED:
		p.Linef("it would be granted")
		drawPlacements(u, p, decision)
		return nil
	case answer.GetDecidedAt() != nil:
		p.Linef("denied at %s:", cli.FormatTime(answer.GetDecidedAt()))
	default:
		p.Linef("it would be denied:")
	}
	for _, v := range decision.GetViolations() {
		p.Linef("  %s", u.ViolationText(v))
	}
	if decision.GetNeverFits() {
		p.Linef("The request is larger than a limit: releasing other allocations does not help.")
	}
	if answer.GetDecidedAt() != nil && decision.GetRemedy() == nil {
		p.Linef("The request may fit by now, or be refused for another reason; explain it with --at to find out.")
	}
	drawHolders(u, p, decision.GetHolders(), answer.GetRead().GetLedgerTimeMs())
	drawRemedy(u, p, decision)
	return nil
}

func drawCertainBy(p *cli.Page, answer *quoratev1.ExplainResponse) {
	waiting := answer.GetAllocation().GetWaiting()
	if resize := answer.GetAllocation().GetResize(); resize != nil {
		waiting = resize.GetWaiting()
	}
	switch at := waiting.GetCertainByLedgerMs(); {
	case waiting == nil:
		p.Linef("It does not wait.")
	case at == 0:
		p.Linef("When it is granted is not certain: what is in its way has no known end, ends too late, or is hidden from " +
			"you.")
	default:
		p.Linef("It is granted %s at the latest, unless something else changes.",
			cli.CertainText(at, answer.GetRead().GetLedgerTimeMs()))
	}
}

// drawHolders writes who is in the way at each violated limit.
func drawHolders(u cli.Units, p *cli.Page, levels []*quoratev1.LevelHolders, nowMs int64) {
	for _, level := range levels {
		at := cli.PlaceOf(level.GetTree(), level.GetNode()).String() + "  " + cmp.Or(cli.LimitText(level), "everything")
		if len(level.GetGroups()) > 0 || level.GetOthers() > 0 {
			p.Linef("\nHeld at %s:", at)
			for _, g := range level.GetGroups() {
				p.Linef("  %s  %s", u.LevelAmount(level, g.GetAmount()), cli.GroupText(level.GetTree(), g))
			}
			if level.GetOthers() > 0 {
				p.Linef("  %s  others", u.LevelAmount(level, level.GetOthers()))
			}
		}
		drawBlockers(p, "  by ", u.BlockerTexts(level, level.GetAllocations(), nowMs), level.GetOtherAllocations())
		if ahead := level.GetBlockers(); len(ahead) > 0 {
			p.Linef("\nBefore it in the queue for %s:", at)
			drawBlockers(p, "  ", u.BlockerTexts(level, ahead, nowMs), level.GetOtherBlockers())
		}
	}
}

func drawBlockers(p *cli.Page, before string, texts []string, others int64) {
	for _, text := range texts {
		p.Linef("%s%s", before, text)
	}
	if others > 0 {
		p.Linef("  and %d more", others)
	}
}

func drawRemedy(u cli.Units, p *cli.Page, decision *quoratev1.Decision) {
	remedy := decision.GetRemedy()
	heading := remedyHeading(decision)
	if raises := remedy.GetRaises(); len(raises) > 0 {
		p.Linef("\n%s", heading)
		for _, r := range raises {
			p.Linef("  %s", raiseText(u, r))
		}
		heading = "Or after all of:"
	}
	if releases := remedy.GetReleases(); len(releases) > 0 {
		if len(releases) > 1 {
			heading = strings.TrimSuffix(heading, ":") + ", in this order:"
		}
		p.Linef("\n%s", heading)
		for _, r := range releases {
			p.Linef("  quorate release %s%s", cli.ShellWord(r.GetId()), namespaceFlag(r))
		}
	}
}

// remedyHeading says what the commands lead to. What they free goes to the requests before it first.
func remedyHeading(decision *quoratev1.Decision) string {
	subject := "It"
	if number := decision.GetRemedy().GetAlternative(); number > 0 {
		subject = "Its " + cli.AlternativeText(number)
	}
	if slices.ContainsFunc(decision.GetHolders(), func(l *quoratev1.LevelHolders) bool {
		return len(l.GetBlockers()) > 0 || l.GetOtherBlockers() > 0
	}) {
		return "Without the requests before it, " + strings.ToLower(subject[:1]) + subject[1:] +
			" would be granted after all of:"
	}
	return subject + " would be granted after all of:"
}

// raiseText is the command that raises a limit, or a comment if no command can.
func raiseText(u cli.Units, r *quoratev1.Raise) string {
	at := cli.PlaceOf(r.GetTree(), r.GetNode())
	amount := func(n int64) string { return u.FormatAmount(r.GetTree(), r.GetResource(), n) }
	comment := "# " + at.String() + "  " + cli.LimitText(r) + ": " + amount(r.GetLimit()) + " -> " +
		amount(r.GetNewLimit())
	change := changedLimitText(r, amount(r.GetNewLimit()))
	switch {
	case r.GetUnconfigured():
		return comment + ", after the node is configured"
	case change == "":
		return comment
	case r.GetNeedsReason():
		change += " --reason='room for a denied request'"
	}
	return "quorate limit set " + at.String() + " " + change
}

// changedLimitText are the arguments of "quorate limit set" that set a limit; empty if it cannot set such a limit.
func changedLimitText(r *quoratev1.Raise, to string) string {
	text := ""
	switch r.GetKind() {
	case quoratev1.ViolationKind_VIOLATION_KIND_UNSPECIFIED, quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE:
		text = r.GetResource() + "=" + to
	case quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS:
		text = "--applications=" + to
	case quoratev1.ViolationKind_VIOLATION_KIND_BORROWING, quoratev1.ViolationKind_VIOLATION_KIND_ITEMS,
		quoratev1.ViolationKind_VIOLATION_KIND_QUEUE, quoratev1.ViolationKind_VIOLATION_KIND_CORDON:
		return ""
	}
	switch r.GetHolderKind() {
	case quoratev1.HolderKind_HOLDER_KIND_USER:
		text += " --user=" + cli.FlagWord(r.GetHolder())
	case quoratev1.HolderKind_HOLDER_KIND_GROUP:
		text += " --group=" + cli.FlagWord(r.GetHolder())
	case quoratev1.HolderKind_HOLDER_KIND_UNSPECIFIED, quoratev1.HolderKind_HOLDER_KIND_NODE:
	}
	return text
}

// namespaceFlag is what a command needs beside the id of an allocation that has not the usual namespace.
func namespaceFlag(r *quoratev1.AllocationRef) string {
	if r.GetNamespace() == "" || r.GetNamespace() == cli.DefaultNamespace {
		return ""
	}
	return " --namespace " + cli.ShellWord(r.GetNamespace())
}
