package client

import (
	"errors"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Errors that errors.Is finds in the errors of Acquire and of calls, and in the cause of a lease's context.
var (
	// ErrUnavailable means that no server answered in time. The request may have been carried out; Acquire has tried to
	// withdraw it.
	ErrUnavailable = errors.New("no server answers")
	// ErrCertificate means that a server requires a certificate of this client, or rejects the one that it has. The server
	// has not carried the call out.
	ErrCertificate = errors.New("the server rejects this client's certificate")
	// ErrLost means that a lease has ended, or may have ended by now, although its holder did not release it. The error is
	// a *LostError.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of a lease's context after Release.
	ErrReleased = errors.New("the lease was released")
)

// DeniedError is the error of a request that can never fit, or that does not fit now and may not wait.
type DeniedError struct {
	// Decision names every limit in the way, at every level.
	Decision *quoratev1.Decision
	cause    error
}

// Error returns the server's text.
func (e *DeniedError) Error() string { return e.cause.Error() }

// Unwrap returns the answer of the server, for connect.CodeOf.
func (e *DeniedError) Unwrap() error { return e.cause }

// TimedOutError is the error of a request that was not granted within its time to wait.
type TimedOutError struct {
	// Decision names the limits that were in the way when the time was over.
	Decision *quoratev1.Decision
	// Waited is how long the request waited.
	Waited time.Duration
	cause  error
}

// Error says how long the request waited, and for what.
func (e *TimedOutError) Error() string {
	return fmt.Sprintf("not granted after %v: %s", e.Waited.Round(time.Second), e.Decision.GetExplanation())
}

// Unwrap returns context.DeadlineExceeded if the caller's context ended, or the server's answer if the request's time
// to wait did.
func (e *TimedOutError) Unwrap() error { return e.cause }

// How is a way in which a lease was lost.
type How string

// The ways in which a lease is lost.
const (
	// Unrenewed means that the lease could not be renewed in time. The servers may still hold it for a moment.
	Unrenewed How = "it could not be renewed in time"
	// Ended means that the servers have ended the lease: it expired or was released.
	Ended How = "it has ended"
	// Preempted means that the lease was revoked for another allocation.
	Preempted How = "it had to give way"
	// Taken means that its id belongs to another grant by now.
	Taken How = "its id stands for another grant"
)

// LostError is the error of a lost lease. errors.Is(err, ErrLost) finds it.
type LostError struct {
	// Namespace and ID are the allocation's.
	Namespace, ID string
	// How is how it was lost.
	How How
	// By says for whom it was revoked: the id of an allocation, after its namespace if that is another one, or a text.
	By    string
	cause error
}

// Error says how the lease was lost, for which allocation, and the failure of the last renewal.
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

// Unwrap returns the failure of the last renewal, if there was one.
func (e *LostError) Unwrap() error { return e.cause }
