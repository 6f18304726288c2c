package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Exit codes. Scripts depend on them: a number never gets another meaning.
const (
	ExitOK = iota
	ExitFailure
	ExitUsage
	ExitDenied
	ExitForbidden
	ExitConflict
	ExitUnavailable
	ExitLeaseLost
	ExitTimedOut
	exitWaiting
)

// exitCodes has the meaning of each exit code, and the codes of answers that lead to it.
var exitCodes = []struct {
	code    int
	name    string
	meaning string
	answers []connect.Code
}{
	{ExitOK, "ok", "the command succeeded, or a dry run would succeed", nil},
	{ExitFailure, "failure", "any other error, such as an unknown tree, node, resource or id", nil},
	{
		ExitUsage, "usage", "the command line or a file is malformed; nothing was changed",
		[]connect.Code{connect.CodeInvalidArgument},
	},
	{
		ExitDenied, "denied", "a limit or a policy forbids it; standard error names every one",
		[]connect.Code{connect.CodeFailedPrecondition},
	},
	{
		ExitForbidden, "forbidden", "you are not authenticated (a token or certificate may be missing, refused or " +
			"over) or not permitted to do this",
		[]connect.Code{connect.CodeUnauthenticated, connect.CodePermissionDenied},
	},
	{
		ExitConflict, "conflict", "the id belongs to another or an ended allocation, or the revision is not " +
			"the expected one",
		[]connect.Code{connect.CodeAlreadyExists, connect.CodeAborted},
	},
	{
		ExitUnavailable, "unavailable", "no server answered in time, or the cluster has no leader; try again",
		[]connect.Code{connect.CodeUnavailable, connect.CodeDeadlineExceeded},
	},
	{ExitLeaseLost, "lease lost", "the lease of the command, or the request that it waited for, ended before the " +
		"command", nil},
	{ExitTimedOut, "timed out", "the wait timed out; standard error names what was in the way", nil},
	{exitWaiting, "waiting", "the request is in the queue and holds nothing yet; repeat the command to collect the " +
		"grant", nil},
}

// ExitError is an exit code without a message: that of a command that quorate ran, or one of quorate itself (Ours).
type ExitError struct {
	Code int
	Ours bool
}

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// ShiftedError is an error whose exit code is By larger than usual.
type ShiftedError struct {
	Err error
	By  int
}

func (e *ShiftedError) Error() string { return e.Err.Error() }

func (e *ShiftedError) Unwrap() error { return e.Err }

// FixedError is an error with an exit code that does not depend on it.
type FixedError struct {
	Err  error
	Code int
}

func (e *FixedError) Error() string { return e.Err.Error() }

func (e *FixedError) Unwrap() error { return e.Err }

// CheckLeader is an error if there is no leader, for commands that have printed what a server knows without one.
func CheckLeader(leaderID string) error {
	if leaderID == "" {
		return &ExitError{Code: ExitUnavailable, Ours: true}
	}
	return nil
}

// WaitingError reports a request that stays in the queue after the command.
type WaitingError struct {
	Message string
}

func (e *WaitingError) Error() string { return e.Message }

// usageError reports a malformed command line or file.
type usageError struct {
	message string
}

func (e *usageError) Error() string { return e.message }

// Usagef reports a malformed command line or file, with exit code 2.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// ExitCodeOf is the exit code for an error of a command.
func ExitCodeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		return ExitUsage
	}
	if code, known := leaseExitCode(err); known {
		return code
	}
	if _, denied := client.DecisionOf(err); denied {
		return ExitDenied
	}
	if problem, _ := client.ProblemOf(err); problem.GetReason() == "ENDED" {
		return ExitConflict // the id belongs to an ended allocation
	}
	answer := connect.CodeOf(err)
	for _, exit := range exitCodes {
		if slices.Contains(exit.answers, answer) {
			return exit.code
		}
	}
	return ExitFailure
}

// leaseExitCode is the exit code for errors of leases, waiting and connections.
func leaseExitCode(err error) (int, bool) {
	status, timedOut, waiting := (*ExitError)(nil), (*client.TimedOutError)(nil), (*WaitingError)(nil)
	switch {
	case errors.As(err, &status):
		return status.Code, true
	case errors.As(err, &timedOut):
		return ExitTimedOut, true
	case errors.As(err, &waiting):
		return exitWaiting, true
	case errors.Is(err, client.ErrLost):
		return ExitLeaseLost, true
	case errors.Is(err, client.ErrCertificate): // before ErrUnavailable, which such an error is as well
		return ExitForbidden, true
	case errors.Is(err, client.ErrUnavailable):
		return ExitUnavailable, true
	}
	return 0, false
}

// ReportError prints an error of a command and returns the exit code.
func (c *Env) ReportError(cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	if shifted := (*ShiftedError)(nil); errors.As(err, &shifted) {
		return c.ReportError(cmd, shifted.Err) + shifted.By
	}
	if fixed := (*FixedError)(nil); errors.As(err, &fixed) {
		c.ReportError(cmd, fixed.Err)
		return fixed.Code
	}
	if status := (*ExitError)(nil); errors.As(err, &status) {
		return status.Code
	}
	c.Messagef("quorate: %s", c.inUnits(err, ErrorText(err)))
	if !c.Started { // the command line could not be parsed
		c.Messagef("usage: %s", cmd.UseLine())
		return ExitUsage
	}
	if decision, denied := client.DecisionOf(err); denied {
		c.printViolations(decision)
	}
	if timedOut := (*client.TimedOutError)(nil); errors.As(err, &timedOut) {
		c.printViolations(timedOut.Decision)
	}
	if problem, found := client.ProblemOf(err); found {
		c.printBreaches(problem)
	}
	c.printCredentialHints(err)
	c.printTreeHint(cmd, err)
	c.printNodeHint(cmd, err)
	return ExitCodeOf(err)
}

// inUnits converts base units in the message of a denial: 17179869184 to 16Gi.
func (c *Env) inUnits(err error, message string) string {
	decision, _ := client.DecisionOf(err)
	for _, v := range decision.GetViolations() {
		numbers := func(write func(int64) string) string {
			missing := fmt.Sprintf("%s requested, %s missing", write(v.GetRequested()), write(v.GetMissing()))
			if v.Seen != nil {
				return fmt.Sprintf("%s %s requested, %s missing", write(v.GetRequested()), v.GetResource(),
					write(v.GetMissing()))
			}
			return fmt.Sprintf("%s of %s %s, %s", write(v.GetUsed()), write(v.GetLimit()), v.GetResource(), missing)
		}
		message = strings.ReplaceAll(message, " "+numbers(func(n int64) string { return strconv.FormatInt(n, 10) }),
			" "+numbers(func(n int64) string { return c.Units.FormatAmount(v.GetTree(), v.GetResource(), n) }))
	}
	return message
}

// ErrorText is the message and the code of an answer of a server, and the text of any other error.
func ErrorText(err error) string {
	if denied := (*client.DeniedError)(nil); errors.As(err, &denied) {
		err = denied.Unwrap()
	}
	//nolint:errorlint // a wrapped one has more to say than the answer
	if answer, direct := err.(*connect.Error); direct {
		return fmt.Sprintf("%s (%v)", messageField.ReplaceAllString(answer.Message(), ""), answer.Code())
	}
	return err.Error()
}

// messageField matches the path of a field of the request before a message about a tree, node or resource: a command
// line has no such field, and the message names them.
var messageField = regexp.MustCompile(`^(subtree\.|request\.)?((any_of\[\d+\]\.)?claims\[\d+\]\.)?(node|tree|resource): `)

func (c *Env) printViolations(decision *quoratev1.Decision) {
	for _, v := range decision.GetViolations() {
		c.Messagef("  %s", c.Units.ViolationText(v))
	}
	if n := decision.GetOtherViolations(); n > 0 {
		c.Messagef("  and %d more limits", n)
	}
	c.printHolders(decision)
}

func (c *Env) printBreaches(problem *quoratev1.Problem) {
	for _, b := range problem.GetBreaches() {
		c.Messagef("  %s  %s: %s (policy %s)", Place{b.GetTree(), b.GetNode()}, b.GetResource(),
			b.GetText(), b.GetPolicy())
	}
}

// printCredentialHints prints commands that show or repair the caller's credential.
func (c *Env) printCredentialHints(err error) {
	if c.Token.Unused {
		return
	}
	problem, _ := client.ProblemOf(err)
	switch code := connect.CodeOf(err); {
	case code == connect.CodeUnauthenticated && !c.Token.isSet():
		c.Messagef("  to present a token:       export %s=FILE", tokenFileVariable)
		c.Messagef("  to see who you are:       quorate access whoami")
	case code == connect.CodeUnauthenticated:
		c.Messagef("  the token is from:        %s", c.Token.origin())
		c.Messagef("  to make another one:      quorate token create ACCOUNT --out FILE")
	case code == connect.CodePermissionDenied && problem.GetField() != "actor": // --actor names another user
		c.Messagef("  to see who you are:       quorate access whoami")
		if verb := problem.GetMissingVerb(); verb != "" {
			where := PlaceOf(problem.GetMissingTree(), problem.GetMissingNode())
			if where.Tree != "" {
				verb += " " + where.String()
			}
			c.Messagef("  who may (administrators): quorate binding list %s", verb)
		}
	}
}

// printTreeHint prints the trees that the caller sees if the first argument of the command names none of them.
func (c *Env) printTreeHint(cmd *cobra.Command, err error) {
	args := cmd.Flags().Args()
	if connect.CodeOf(err) != connect.CodeNotFound || len(args) == 0 || !strings.Contains(cmd.Use, "TREE") {
		return
	}
	names, _ := c.CompleteTrees(cmd, nil, "")
	tree, _, _ := strings.Cut(args[0], ":")
	if len(names) == 0 || slices.Contains(names, tree) {
		return
	}
	const named = 8
	shown := strings.Join(names[:min(len(names), named)], ", ")
	if len(names) > named {
		shown += ", ..."
	}
	c.Messagef("  trees that you see: %s", shown)
}

// NewExitCodesTopic is "quorate help exit-codes".
func NewExitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("Quorate ends with one of these exit codes:\n\n")
	for _, exit := range exitCodes {
		fmt.Fprintf(&text, "  %d  %-12s %s\n", exit.code, exit.name, exit.meaning)
	}
	text.WriteString(`
"quorate lease run" ends with the exit code of its command; with 128 plus the number of the signal that ended it
or the wait; with 126 or 127 if the command could not be started; and with one of the codes above if there
was no lease or the lease was lost. --codes-from N adds N to those, for commands that use the same exit codes.
`)
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean",
		Long: strings.TrimSuffix(text.String(), "\n"),
	}
}
