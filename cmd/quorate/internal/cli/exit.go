package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Exit codes. They are a contract with scripts: a number is never given another meaning.
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

// exitCodes says what each exit code means, and which answers of a server lead to it.
var exitCodes = []struct {
	code    int
	name    string
	meaning string
	answers []connect.Code
}{
	{ExitOK, "ok", "it was done, or a dry run says that it would be", nil},
	{ExitFailure, "failure", "anything that no other code stands for, such as an unknown tree, node, resource or id", nil},
	{
		ExitUsage, "usage", "the command line or a file is malformed; nothing was changed",
		[]connect.Code{connect.CodeInvalidArgument},
	},
	{
		ExitDenied, "denied", "a limit or a policy stands in the way; standard error names every one",
		[]connect.Code{connect.CodeFailedPrecondition},
	},
	{
		ExitForbidden, "forbidden", "you are not authenticated, by a missing or refused certificate too, or not permitted to do this",
		[]connect.Code{connect.CodeUnauthenticated, connect.CodePermissionDenied},
	},
	{
		ExitConflict, "conflict", "the id is taken by something else or has ended, or the revision is not the expected one",
		[]connect.Code{connect.CodeAlreadyExists, connect.CodeAborted},
	},
	{
		ExitUnavailable, "unavailable", "no server answered in time, or the cluster has no leader; try again",
		[]connect.Code{connect.CodeUnavailable, connect.CodeDeadlineExceeded},
	},
	{ExitLeaseLost, "lease lost", "the lease that a command ran under, or the request that it waited for, has ended before it", nil},
	{ExitTimedOut, "timed out", "the time to wait was over; standard error names what was in the way", nil},
	{exitWaiting, "waiting", "the request is in the queue and holds nothing yet; repeat the command to come for it", nil},
}

// ExitError ends quorate with the exit code of a command that it ran, or with one of ours, and says nothing more.
type ExitError struct {
	Code int
	Ours bool
}

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// ShiftedError is an error whose exit code is a larger one than usual.
type ShiftedError struct {
	Err error
	By  int
}

func (e *ShiftedError) Error() string { return e.Err.Error() }

func (e *ShiftedError) Unwrap() error { return e.Err }

// CheckLeader ends a command that has shown what a server knows of a cluster without a leader.
func CheckLeader(leaderID string) error {
	if leaderID == "" {
		return &ExitError{Code: ExitUnavailable, Ours: true}
	}
	return nil
}

// WaitingError is a request that was left in the queue.
type WaitingError struct {
	Message string
}

func (e *WaitingError) Error() string { return e.Message }

// usageError is a command line that makes no sense.
type usageError struct {
	message string
}

func (e *usageError) Error() string { return e.message }

func Usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// ExitCodeOf gives the exit code for the outcome of a command.
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
		return ExitConflict // the id stands for what has been and gone
	}
	answer := connect.CodeOf(err)
	for _, exit := range exitCodes {
		if slices.Contains(exit.answers, answer) {
			return exit.code
		}
	}
	return ExitFailure
}

// leaseExitCode gives the exit code for what can become of leases and of waiting.
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
	case errors.Is(err, client.ErrCertificate): // before what follows: the server that wants it cannot be called so
		return ExitForbidden, true
	case errors.Is(err, client.ErrUnavailable):
		return ExitUnavailable, true
	}
	return 0, false
}

// ReportError says what went wrong with a command and answers the exit code.
func (c *Env) ReportError(cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	if shifted := (*ShiftedError)(nil); errors.As(err, &shifted) {
		return c.ReportError(cmd, shifted.Err) + shifted.By
	}
	if status := (*ExitError)(nil); errors.As(err, &status) {
		return status.Code
	}
	c.Messagef("quorate: %s", ErrorText(err))
	if !c.Started { // the command line was not even understood
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
	return ExitCodeOf(err)
}

// ErrorText is what a server said, followed by its code; everything else is as it is.
func ErrorText(err error) string {
	if denied := (*client.DeniedError)(nil); errors.As(err, &denied) {
		err = denied.Unwrap()
	}
	if answer, direct := err.(*connect.Error); direct { //nolint:errorlint // a wrapped one has more to say than the answer
		return fmt.Sprintf("%s (%v)", answer.Message(), answer.Code())
	}
	return err.Error()
}

// printViolations names every limit in the way.
func (c *Env) printViolations(decision *quoratev1.Decision) {
	for _, v := range decision.GetViolations() {
		c.Messagef("  %s", c.Units.ViolationText(v))
	}
}

// printBreaches names every rule of a policy that a configuration would break.
func (c *Env) printBreaches(problem *quoratev1.Problem) {
	for _, b := range problem.GetBreaches() {
		c.Messagef("  %s  %s: %s (policy %s)", Place{b.GetTree(), b.GetNode()}, b.GetResource(), b.GetText(), b.GetPolicy())
	}
}

// NewExitCodesTopic is "quorate help exit-codes".
func NewExitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("Quorate ends with one of these exit codes:\n\n")
	for _, exit := range exitCodes {
		fmt.Fprintf(&text, "  %d  %-12s %s\n", exit.code, exit.name, exit.meaning)
	}
	text.WriteString(`
"quorate lease run" ends with the exit code of its command, with 128 and the number of the signal if that ended it or broke
off the wait, and with 126 or 127 if it could not be started; with one of the codes above if there was no lease, or if it
was lost. --codes-from N adds N to those, for scripts whose command has such exit codes itself.
`)
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimSuffix(text.String(), "\n")}
}
