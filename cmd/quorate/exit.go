package main

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
	exitOK = iota
	exitFailure
	exitUsage
	exitDenied
	exitForbidden
	exitConflict
	exitUnavailable
	exitLeaseLost
	exitTimedOut
	exitWaiting
)

// exitCodes says what each exit code means, and which answers of a server lead to it.
var exitCodes = []struct {
	code    int
	name    string
	meaning string
	answers []connect.Code
}{
	{exitOK, "ok", "it was done, or a dry run says that it would be", nil},
	{exitFailure, "failure", "anything that no other code stands for, such as an unknown tree, node, resource or id", nil},
	{
		exitUsage, "usage", "the command line or a file is malformed; nothing was changed",
		[]connect.Code{connect.CodeInvalidArgument},
	},
	{
		exitDenied, "denied", "a limit or a policy stands in the way; standard error names every one",
		[]connect.Code{connect.CodeFailedPrecondition},
	},
	{
		exitForbidden, "forbidden", "you are not authenticated, by a missing or refused certificate too, or not permitted to do this",
		[]connect.Code{connect.CodeUnauthenticated, connect.CodePermissionDenied},
	},
	{
		exitConflict, "conflict", "the id is taken by something else or has ended, or the revision is not the expected one",
		[]connect.Code{connect.CodeAlreadyExists, connect.CodeAborted},
	},
	{
		exitUnavailable, "unavailable", "no server answered in time, or the cluster has no leader; try again",
		[]connect.Code{connect.CodeUnavailable, connect.CodeDeadlineExceeded},
	},
	{exitLeaseLost, "lease lost", "the lease that a command ran under, or the request that it waited for, has ended before it", nil},
	{exitTimedOut, "timed out", "the time to wait was over; standard error names what was in the way", nil},
	{exitWaiting, "waiting", "the request is in the queue and holds nothing yet; repeat the command to come for it", nil},
}

// statusError ends quorate with the exit code of a command that it ran, or with one of ours, and says nothing more.
type statusError struct {
	code int
	ours bool
}

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// shiftedError is an error whose exit code is a larger one than usual.
type shiftedError struct {
	err error
	by  int
}

func (e *shiftedError) Error() string { return e.err.Error() }

func (e *shiftedError) Unwrap() error { return e.err }

// needsLeader ends a command that has shown what a server knows of a cluster without a leader.
func needsLeader(leaderID string) error {
	if leaderID == "" {
		return &statusError{code: exitUnavailable, ours: true}
	}
	return nil
}

// waitingError is a request that was left in the queue.
type waitingError struct {
	message string
}

func (e *waitingError) Error() string { return e.message }

// usageError is a command line that makes no sense.
type usageError struct {
	message string
}

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// exitCodeOf gives the exit code for the outcome of a command.
func exitCodeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		return exitUsage
	}
	if code, known := leaseExitCode(err); known {
		return code
	}
	if _, denied := client.DecisionOf(err); denied {
		return exitDenied
	}
	if problem, _ := client.ProblemOf(err); problem.GetReason() == "ENDED" {
		return exitConflict // the id stands for what has been and gone
	}
	answer := connect.CodeOf(err)
	for _, exit := range exitCodes {
		if slices.Contains(exit.answers, answer) {
			return exit.code
		}
	}
	return exitFailure
}

// leaseExitCode gives the exit code for what can become of leases and of waiting.
func leaseExitCode(err error) (int, bool) {
	status, timedOut, waiting := (*statusError)(nil), (*client.TimedOutError)(nil), (*waitingError)(nil)
	switch {
	case errors.As(err, &status):
		return status.code, true
	case errors.As(err, &timedOut):
		return exitTimedOut, true
	case errors.As(err, &waiting):
		return exitWaiting, true
	case errors.Is(err, client.ErrLost):
		return exitLeaseLost, true
	case errors.Is(err, client.ErrCertificate): // before what follows: the server that wants it cannot be called so
		return exitForbidden, true
	case errors.Is(err, client.ErrUnavailable):
		return exitUnavailable, true
	}
	return 0, false
}

// report says what went wrong with a command and answers the exit code.
func (c *cli) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	if shifted := (*shiftedError)(nil); errors.As(err, &shifted) {
		return c.report(cmd, shifted.err) + shifted.by
	}
	if status := (*statusError)(nil); errors.As(err, &status) {
		return status.code
	}
	c.say("quorate: %s", sentence(err))
	if !c.started { // the command line was not even understood
		c.say("usage: %s", cmd.UseLine())
		return exitUsage
	}
	if decision, denied := client.DecisionOf(err); denied {
		c.sayViolations(decision)
	}
	if timedOut := (*client.TimedOutError)(nil); errors.As(err, &timedOut) {
		c.sayViolations(timedOut.Decision)
	}
	if problem, found := client.ProblemOf(err); found {
		c.sayBreaches(problem)
	}
	return exitCodeOf(err)
}

// sentence is what a server said, followed by its code; everything else is as it is.
func sentence(err error) string {
	if denied := (*client.DeniedError)(nil); errors.As(err, &denied) {
		err = denied.Unwrap()
	}
	if answer, direct := err.(*connect.Error); direct { //nolint:errorlint // a wrapped one has more to say than the answer
		return fmt.Sprintf("%s (%v)", answer.Message(), answer.Code())
	}
	return err.Error()
}

// sayViolations names every limit in the way.
func (c *cli) sayViolations(decision *quoratev1.Decision) {
	for _, v := range decision.GetViolations() {
		c.say("  %s", c.units.violation(v))
	}
}

// sayBreaches names every rule of a policy that a configuration would break.
func (c *cli) sayBreaches(problem *quoratev1.Problem) {
	for _, b := range problem.GetBreaches() {
		c.say("  %s  %s: %s (policy %s)", place{b.GetTree(), b.GetNode()}, b.GetResource(), b.GetText(), b.GetPolicy())
	}
}

// newExitCodesTopic is "quorate help exit-codes".
func newExitCodesTopic() *cobra.Command {
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
