package client

import (
	"errors"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// DecisionOf gives the decision that a denial carries: every limit in the way, at every level. It answers false for
// errors that are no denials.
func DecisionOf(err error) (*quoratev1.Decision, bool) {
	var failure *connect.Error
	if !errors.As(err, &failure) {
		return nil, false
	}
	for _, detail := range failure.Details() {
		message, err := detail.Value()
		if err != nil {
			continue // a detail of a type that this version does not know
		}
		if decision, isDecision := message.(*quoratev1.Decision); isDecision {
			return decision, true
		}
	}
	return nil, false
}
