package config

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type changeOptions struct {
	*cli.Env
	dryRun   bool
	expected revisionFlag
	actor    string
	reason   string
	isSure   bool // --yes
	allowed  removalsFlag
}

type changeAnswer interface {
	proto.Message
	GetResult() *quoratev1.ConfigurationResult
	GetWrite() *quoratev1.WriteInfo
}

// runChange makes one change and prints its result. Units are read before the call, because afterwards a server no
// longer knows the units of a deleted tree.
func (o *changeOptions) runChange(
	ctx context.Context, learnUnits func(context.Context, *client.Client) error,
	call func(context.Context, *client.Client) (changeAnswer, error),
) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := learnUnits(ctx, quorate); err != nil {
		return err
	}
	answer, err := call(ctx, quorate)
	if err != nil {
		return err
	}
	err = o.printResult(answer)
	if err == nil && !o.dryRun {
		o.ReportStanding(ctx, quorate, cli.UsersWithout(answer.GetResult().GetChanges())...)
	}
	return err
}

// unitsForTable reads the units that a table shows; without them amounts are in base units.
func (o *changeOptions) unitsForTable(ctx context.Context, quorate *client.Client) error {
	o.LearnUnitsForTable(ctx, quorate)
	return nil
}

func (o *changeOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report what would change and what would be refused")
	o.addMetaFlags(cmd)
}

// addConfirmation adds --yes, for changes that ask for confirmation at a terminal.
func (o *changeOptions) addConfirmation(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.isSure, "yes", false, "do not ask at a terminal before something is deleted or undone")
}

// addAllowRemovals adds the consent to a change that removes much.
func (o *changeOptions) addAllowRemovals(cmd *cobra.Command) {
	cmd.Flags().Var(&o.allowed, "allow-removals",
		"consent to the removal of this many trees and nodes; needed if a tree goes, or more than half of its nodes")
}

// confirm asks only at a terminal. Scripts are not asked: --dry-run shows what a change would do.
func (o *changeOptions) confirm(what string) error {
	if o.isSure || o.dryRun {
		return nil
	}
	return o.Confirm("This would " + what + ".")
}

// addMetaFlags adds the flags that plan has as well.
func (o *changeOptions) addMetaFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&o.expected, "expected-revision", "refuse unless this is the current revision of the configuration")
	flags.StringVar(&o.actor, "actor", os.Getenv("USER"), "who makes the change, for the history")
	cli.AddReasonFlag(flags, &o.reason)
}

// revisionFlag is a number that may be absent.
type revisionFlag struct {
	value *uint64
}

// Set reads the number.
func (f *revisionFlag) Set(text string) error {
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return cli.Usagef("%q is not a revision: use a number from quorate revision list", text)
	}
	f.value = &revision
	return nil
}

// String writes the number, or nothing.
func (f *revisionFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.FormatUint(*f.value, 10)
}

// Type is shown in help texts.
func (f *revisionFlag) Type() string { return "N" }

func (o *changeOptions) printResult(answer changeAnswer) error {
	result := answer.GetResult()
	printSummary(o.Env, answer, o.dryRun)
	return o.Print(answer, func(p *cli.Page) error {
		drawResult(o.Units, p, result)
		return nil
	})
}

func drawResult(u cli.Units, p *cli.Page, result *quoratev1.ConfigurationResult) {
	for _, change := range result.GetChanges() {
		p.Differencef("%s", changeText(change))
	}
	for _, over := range result.GetOveruses() {
		at := cli.PlaceOf(over.GetTree(), over.GetNode())
		amount := func(n int64) string { return u.FormatAmount(over.GetTree(), over.GetResource(), n) }
		effect := "nothing is evicted, but it cannot grow"
		if over.GetIsAdvisory() {
			effect = "the limit is advisory and denies nothing"
		}
		p.Differencef("! %s  %s: uses %s of %s, %s over; %s", at, cli.LimitText(over), amount(over.GetUsed()),
			amount(over.GetLimit()), amount(over.GetUsed()-over.GetLimit()), effect)
	}
	for _, room := range result.GetRooms() {
		p.Differencef("%s", headroomText(u, room))
	}
	for _, r := range result.GetAdmitted() {
		p.Differencef("* %s: was denied recently and would be granted", cli.NameText(r, cli.DefaultNamespace))
	}
	drawQueueEffects(p, result)
}

// drawQueueEffects writes a line for each waiting request, and each holder, to which the change would do something.
func drawQueueEffects(p *cli.Page, result *quoratev1.ConfigurationResult) {
	queue := result.GetQueue()
	drawAffected(p, queue.GetGranted(), "*", "waits and would be granted")
	drawAffected(p, queue.GetPreempted(), "!", "would be preempted")
	drawAffected(p, queue.GetRevoked(), "!", "would be revoked after its grace span")
	drawAffected(p, queue.GetCancelled(), "!", "waits and would be cancelled, because the request would be refused")
	drawAffected(p, queue.GetSetAside(), "!", "waits and would step aside until a limit is raised, because it cannot fit")
	if result.GetQueueNotEvaluated() {
		p.Linef("? waiting requests were not evaluated: the ledger holds more than is copied for a plan")
	}
}

func drawAffected(p *cli.Page, affected *quoratev1.AffectedRequests, sign, what string) {
	for _, r := range affected.GetRequests() {
		favoured := ""
		if by := r.GetBy(); by != nil {
			favoured = " by " + cli.CauseText(by, r.GetNamespace(), nil)
		}
		p.Differencef("%s %s: %s%s", sign, cli.NameText(r, cli.DefaultNamespace), what, favoured)
	}
	if more := affected.GetTotal() - int64(len(affected.GetRequests())); more > 0 {
		p.Differencef("%s and %d more: each %s", sign, more, what)
	}
}

// headroomText writes how the headroom of a node changes: < is lost, > is gained.
func headroomText(u cli.Units, r *quoratev1.RoomChange) string {
	text := func(bound *int64) string {
		if bound == nil {
			return unlimitedText
		}
		return u.FormatAmount(r.GetTree(), r.GetResource(), *bound)
	}
	sign := ">"
	if r.After != nil && r.GetAfter() <= 0 {
		sign = "<"
	}
	return sign + " " + cli.PlaceOf(r.GetTree(), r.GetNode()).String() + "  " + r.GetResource() + ": headroom " +
		text(r.Before) + " -> " + text(r.After) //nolint:protogetter // absent is not zero
}

// unlimitedText stands for the headroom where no limit applies.
const unlimitedText = "unlimited"

// changeText writes one difference: + added, ~ changed, - removed.
func changeText(c *quoratev1.Change) string {
	at := c.GetField()
	if c.GetTree() != "" { // definitions of policies and the access section are in no tree
		at = cli.PlaceOf(c.GetTree(), c.GetNode()).String() + "  " + at
	}
	before, after := valueText(c, c.GetBefore()), valueText(c, c.GetAfter())
	switch c.GetKind() {
	case quoratev1.ChangeKind_CHANGE_KIND_ADDED:
		return strings.TrimSuffix("+ "+at+": "+after, ": ")
	case quoratev1.ChangeKind_CHANGE_KIND_REMOVED:
		return strings.TrimSuffix("- "+at+": "+before, ": ")
	case quoratev1.ChangeKind_CHANGE_KIND_CHANGED, quoratev1.ChangeKind_CHANGE_KIND_UNSPECIFIED:
		return "~ " + at + ": " + before + " -> " + after
	}
	return "~ " + at + ": " + before + " -> " + after
}

// valueText is empty for a tree or node, whose name the line has already.
func valueText(c *quoratev1.Change, text string) string {
	if c.GetField() == "tree" || c.GetField() == "node" {
		return ""
	}
	return text
}

func printSummary(c *cli.Env, answer changeAnswer, dryRun bool) {
	result := answer.GetResult()
	count := len(result.GetChanges())
	switch {
	case count == 0:
		c.Messagef("nothing to change; this is revision %d", result.GetRevision())
	case answer.GetWrite().GetRepetition():
		c.Messagef("this change was applied before (revision %d)", result.GetRevision())
	case dryRun:
		c.Messagef("dry run: would apply %s; nothing was changed", countNoun(count, "change"))
	default:
		c.Messagef("applied %s (revision %d)", countNoun(count, "change"), result.GetRevision())
	}
}

func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
