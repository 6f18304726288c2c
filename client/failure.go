package client

import (
	"errors"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// What errors.Is finds in the errors of Acquire and of calls, and in the cause of a lease's context.
var (
	// ErrUnavailable says that no server answered in time. The request may have been carried out; Acquire has tried to
	// take it back.
	ErrUnavailable = errors.New("no server answers")
	// ErrCertificate says that a server wants a certificate of this client, or does not take the one that it has. Nothing
	// was carried out there.
	ErrCertificate = errors.New("the server does not take this client's certificate")
	// ErrLost says that a lease has ended, or may have ended by now, although its holder did not release it. The error is
	// a *LostError.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of a lease's context after Release.
	ErrReleased = errors.New("the lease was released")
)

// DeniedError is a request that was not granted and will not wait: it can never fit, or it was not to wait.
type DeniedError struct {
	// Decision names every limit in the way, at every level.
	Decision *quoratev1.Decision
	cause    error
}

// Error is what the server said.
func (e *DeniedError) Error() string { return e.cause.Error() }

// Unwrap gives the answer of the server, for connect.CodeOf.
func (e *DeniedError) Unwrap() error { return e.cause }

// TimedOutError is a request that waited until its time was over.
type TimedOutError struct {
	// Decision names what was in the way at last.
	Decision *quoratev1.Decision
	// Waited is for how long.
	Waited time.Duration
	cause  error
}

// Error says how long it waited, and for what.
func (e *TimedOutError) Error() string {
	return fmt.Sprintf("not granted after %v: %s", e.Waited.Round(time.Second), e.Decision.GetExplanation())
}

// Unwrap is context.DeadlineExceeded if the caller's time was over, and the server's answer if the request's was.
func (e *TimedOutError) Unwrap() error { return e.cause }

// How says in which way a lease was lost.
type How string

// The ways in which a lease is lost.
const (
	// Unrenewed: it could not be renewed in time. It may still be held for a moment, but that is not certain any more.
	Unrenewed How = "it could not be renewed in time"
	// Ended: the servers say that it has ended: it expired or was released.
	Ended How = "it has ended"
	// Preempted: it had to give way to another allocation.
	Preempted How = "it had to give way"
	// Taken: its id stands for another grant by now.
	Taken How = "its id stands for another grant"
)

// LostError says how a lease was lost. errors.Is(err, ErrLost) finds it.
type LostError struct {
	// ID is the allocation's.
	ID string
	// How it was lost.
	How How
	// By is the id of the allocation that it had to give way to, if it is known.
	By    string
	cause error
}

// Error says how, to whom, and what the last attempt to renew met.
func (e *LostError) Error() string {
	text := fmt.Sprintf("lease %q is lost: %s", e.ID, string(e.How))
	if e.By != "" {
		text += " to " + e.By
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is finds ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap is what the last attempt to renew met, if anything.
func (e *LostError) Unwrap() error { return e.cause }
