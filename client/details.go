package client

import (
	"errors"
	"net"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// DecisionOf returns the decision in the error of a denied request, with every limit in the way at every level, and
// false for errors that are not denials. Over gRPC the explanation travels only as the text of the error; here it is in
// the decision in any case.
func DecisionOf(err error) (*quoratev1.Decision, bool) {
	decision, denied := detailOf[*quoratev1.Decision](err)
	var answer *connect.Error
	if denied && decision.GetExplanation() == "" && errors.As(err, &answer) {
		decision = proto.CloneOf(decision)
		decision.Explanation = answer.Message()
	}
	return decision, denied
}

// ProblemOf returns the details of every other error of a server: a stable reason, the field, and every rule that a
// configuration would break. It returns false for denials, and for errors that no server sent.
func ProblemOf(err error) (*quoratev1.Problem, bool) {
	return detailOf[*quoratev1.Problem](err)
}

// MayBeDone reports whether a write that failed may have been carried out nevertheless. To find out, repeat it with the
// same id, or read. It is false for every answer, for failures that certainly preceded the write, and for refusals of a
// gateway that no server has seen.
func MayBeDone(err error) bool {
	if gateway := gatewayOf(err); gateway != nil {
		return gateway.mayBeDone()
	}
	if err == nil ||
		!isTransient(err) && connect.CodeOf(err) != connect.CodeUnknown && connect.CodeOf(err) != connect.CodeInternal {
		return false
	}
	if problem, found := ProblemOf(err); found {
		return !problem.GetNotApplied()
	}
	if handshake := (*tlsError)(nil); errors.As(err, &handshake) {
		return false // the handshake failed, so the call was not sent
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
