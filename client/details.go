package client

import (
	"errors"
	"net"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// DecisionOf gives the decision that a denial carries: every limit in the way, at every level. It answers false for
// errors that are not denials.
func DecisionOf(err error) (*quoratev1.Decision, bool) {
	return detailOf[*quoratev1.Decision](err)
}

// ProblemOf gives what a server says of every other error: a stable reason, the field, every rule that a configuration
// would break. It answers false for denials and for errors that no server made.
func ProblemOf(err error) (*quoratev1.Problem, bool) {
	return detailOf[*quoratev1.Problem](err)
}

// MayBeDone tells whether a write that failed may have been carried out all the same, so that only repeating it under
// the same id, or looking, can tell. It is false for every answer, and for accidents that certainly came before the
// deed.
func MayBeDone(err error) bool {
	if err == nil || !isTransient(err) && connect.CodeOf(err) != connect.CodeUnknown && connect.CodeOf(err) != connect.CodeInternal {
		return false
	}
	if problem, found := ProblemOf(err); found {
		return !problem.GetNotApplied()
	}
	if misheard := (*tlsError)(nil); errors.As(err, &misheard) {
		return false // the call itself was never said
	}
	unreached := (*net.OpError)(nil)
	return !errors.As(err, &unreached) || unreached.Op != "dial"
}

func detailOf[M proto.Message](err error) (found M, ok bool) {
	var failure *connect.Error
	if !errors.As(err, &failure) {
		return found, false
	}
	for _, detail := range failure.Details() {
		message, err := detail.Value()
		if err != nil {
			continue // a detail of a type that this version does not know
		}
		if found, ok = message.(M); ok {
			return found, true
		}
	}
	return found, false
}
