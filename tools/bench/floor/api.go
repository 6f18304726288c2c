package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"github.com/hashicorp/raft"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// Paths of the server beside the procedures of the API.
const (
	// emptyPrefix is in front of the path of Allocate: this handler decodes the request and answers at once.
	emptyPrefix = "/empty"
	statePath   = "/state"
	rawLoadPath = "/raft"
)

// api serves the calls that allocate and release.
type api struct{ committer *committer }

// newHandler serves the API, the state of the node as JSON, the load of raft alone, and an empty handler.
func newHandler(c *committer, r *raft.Raft, machine *fsm) http.Handler {
	a, mux := &api{c}, http.NewServeMux()
	mux.Handle(quoratev1connect.AllocationServiceAllocateProcedure,
		connect.NewUnaryHandlerSimple(quoratev1connect.AllocationServiceAllocateProcedure, a.allocate))
	mux.Handle(quoratev1connect.AllocationServiceReleaseProcedure,
		connect.NewUnaryHandlerSimple(quoratev1connect.AllocationServiceReleaseProcedure, a.release))
	mux.Handle(quoratev1connect.AllocationServiceBatchAllocateProcedure,
		connect.NewUnaryHandlerSimple(quoratev1connect.AllocationServiceBatchAllocateProcedure, a.batchAllocate))
	mux.Handle(quoratev1connect.AllocationServiceBatchReleaseProcedure,
		connect.NewUnaryHandlerSimple(quoratev1connect.AllocationServiceBatchReleaseProcedure, a.batchRelease))
	mux.Handle(emptyPrefix+quoratev1connect.AllocationServiceAllocateProcedure,
		connect.NewUnaryHandlerSimple(quoratev1connect.AllocationServiceAllocateProcedure, answerNothing))
	mux.HandleFunc(statePath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, state{IsLeader: r.State() == raft.Leader, usage: machine.usage()})
	})
	mux.HandleFunc(rawLoadPath, func(w http.ResponseWriter, request *http.Request) { serveRawLoad(w, request, r) })
	return mux
}

type state struct {
	IsLeader bool
	usage
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a caller that went away needs no answer
}

func answerNothing(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return &quoratev1.AllocateResponse{}, nil
}

func (a *api) allocate(
	ctx context.Context, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	commands, err := appendRequest(nil, request)
	if err != nil {
		return nil, err
	}
	if err := a.commitOne(ctx, commands); err != nil {
		return nil, err
	}
	return &quoratev1.AllocateResponse{}, nil
}

func (a *api) release(ctx context.Context, request *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	if err := a.commitOne(ctx, appendRelease(nil, request.GetId())); err != nil {
		return nil, err
	}
	return &quoratev1.ReleaseResponse{}, nil
}

func (a *api) commitOne(ctx context.Context, command []byte) error {
	outcomes, err := a.committer.propose(ctx, command, 1)
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	if code, text := outcomes[0].failure(); code != 0 {
		return connect.NewError(code, errors.New(text))
	}
	return nil
}

func (a *api) batchAllocate(
	ctx context.Context, request *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	var commands []byte
	var err error
	for _, r := range request.GetRequests() {
		if commands, err = appendRequest(commands, r); err != nil {
			return nil, err
		}
	}
	outcomes, err := a.committer.propose(ctx, commands, len(request.GetRequests()))
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	answer := &quoratev1.BatchAllocateResponse{Outcomes: make([]*quoratev1.AllocateOutcome, len(outcomes))}
	granted := &quoratev1.AllocateOutcome{
		Outcome: &quoratev1.AllocateOutcome_Granted{Granted: &quoratev1.AllocateResponse{}},
	}
	for i, o := range outcomes {
		answer.Outcomes[i] = granted // the same message for all: it is only encoded
		if failure := o.failureMessage(); failure != nil {
			answer.Outcomes[i] = &quoratev1.AllocateOutcome{
				Outcome: &quoratev1.AllocateOutcome_Failure{Failure: failure},
			}
		}
	}
	return answer, nil
}

func (a *api) batchRelease(
	ctx context.Context, request *quoratev1.BatchReleaseRequest,
) (*quoratev1.BatchReleaseResponse, error) {
	var commands []byte
	for _, release := range request.GetRequests() {
		commands = appendRelease(commands, release.GetId())
	}
	outcomes, err := a.committer.propose(ctx, commands, len(request.GetRequests()))
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	answer := &quoratev1.BatchReleaseResponse{Outcomes: make([]*quoratev1.ReleaseOutcome, len(outcomes))}
	released := &quoratev1.ReleaseOutcome{
		Outcome: &quoratev1.ReleaseOutcome_Released{Released: &quoratev1.ReleaseResponse{}},
	}
	for i, o := range outcomes {
		answer.Outcomes[i] = released
		if failure := o.failureMessage(); failure != nil {
			answer.Outcomes[i] = &quoratev1.ReleaseOutcome{Outcome: &quoratev1.ReleaseOutcome_Failure{Failure: failure}}
		}
	}
	return answer, nil
}

// appendRequest refuses a request with more than one claim.
func appendRequest(commands []byte, request *quoratev1.AllocateRequest) ([]byte, error) {
	claims := request.GetClaims()
	if request.GetId() == "" || len(claims) != 1 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("an id and one claim are required"))
	}
	var held amounts
	known := 0
	for i, name := range resourceNames {
		amount, found := claims[0].GetAmounts()[name]
		if found {
			known++
		}
		if held[i] = amount; amount < 0 {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the amount of %s is negative", name))
		}
	}
	if known != len(claims[0].GetAmounts()) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the resources are %v", resourceNames))
	}
	return appendAllocate(commands, request.GetId(), claims[0].GetNode(), held), nil
}

// failure returns the code 0 if the outcome is done.
func (o outcome) failure() (connect.Code, string) {
	switch o {
	case done:
		return 0, ""
	case denied:
		return connect.CodeResourceExhausted, "a limit would be exceeded"
	case unknownNode:
		return connect.CodeNotFound, "the node is unknown"
	case unknownID:
		return connect.CodeNotFound, "the id is unknown"
	case usedID:
		return connect.CodeAlreadyExists, "the id is in use"
	default:
		return connect.CodeInternal, fmt.Sprintf("outcome %d is unknown", o)
	}
}

func (o outcome) failureMessage() *quoratev1.Failure {
	code, text := o.failure()
	if code == 0 {
		return nil
	}
	return &quoratev1.Failure{Code: code.String(), Message: text}
}
