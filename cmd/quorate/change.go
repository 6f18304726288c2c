package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// changeOptions are common to all commands that change configuration.
type changeOptions struct {
	dryRun   bool
	expected revisionFlag
	actor    string
	reason   string
}

func (o *changeOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say what would change and what would be refused")
	flags.Var(&o.expected, "expected-revision", "refuse unless this is the present revision of the configuration")
	flags.StringVar(&o.actor, "actor", os.Getenv("USER"), "who asks, for the history")
	flags.StringVar(&o.reason, "reason", "", "why, for the history")
}

// revisionFlag is a number that may be absent.
type revisionFlag struct {
	value *uint64
}

// Set reads the number.
func (f *revisionFlag) Set(text string) error {
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return usagef("%q is no revision: it is a number, as history shows it", text)
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

// drawResult writes what a change did: a line for each difference, and one for each node that is over its limit now.
func (u units) drawResult(p *page, result *quoratev1.ConfigurationResult) {
	for _, change := range result.GetChanges() {
		p.line("%s", u.change(change))
	}
	for _, over := range result.GetOver() {
		at := place{over.GetTree(), over.GetNode()}
		amount := func(n int64) string { return u.amount(over.GetTree(), over.GetResource(), n) }
		p.line("! %s  %s: uses %s of %s, %s over; nothing is taken away, it only cannot grow", at, over.GetResource(),
			amount(over.GetUsed()), amount(over.GetLimit()), amount(over.GetUsed()-over.GetLimit()))
	}
}

// change writes one difference: + added, ~ changed, - removed.
func (u units) change(c *quoratev1.Change) string {
	at := place{c.GetTree(), c.GetNode()}.String() + "  " + c.GetField()
	before, after := u.value(c, c.GetBefore()), u.value(c, c.GetAfter())
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

// value writes the amount of a limit with its unit, and all else as it is. The name of a tree or node is known already.
func (u units) value(c *quoratev1.Change, text string) string {
	if c.GetField() == "tree" || c.GetField() == "node" {
		return ""
	}
	resource, isLimit := strings.CutPrefix(c.GetField(), "limit ")
	amount, err := strconv.ParseInt(text, 10, 64)
	if !isLimit || err != nil {
		return text
	}
	return u.amount(c.GetTree(), resource, amount)
}

// sayResult tells which revision there is now.
func (c *cli) sayResult(result *quoratev1.ConfigurationResult, dryRun bool) {
	count := len(result.GetChanges())
	switch {
	case count == 0:
		c.say("nothing to change; this is revision %d", result.GetRevision())
	case result.GetRepeated():
		c.say("this change was made before; it is revision %d", result.GetRevision())
	case dryRun:
		c.say("dry run: this would make %s; nothing was changed", counted(count, "change"))
	default:
		c.say("%s made revision %d", counted(count, "change"), result.GetRevision())
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
