package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// Quorate is what the loop calls of a cluster. [Connect] makes one of a client; tests put failures in front of it.
type Quorate interface {
	Allocate(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error)
	Renew(context.Context, *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error)
	Release(context.Context, *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error)
	GetAllocation(context.Context, *quoratev1.GetAllocationRequest) (*quoratev1.GetAllocationResponse, error)
	ListWaiting(context.Context, *quoratev1.ListWaitingRequest) (*quoratev1.ListWaitingResponse, error)
	ListAllocations(context.Context, *quoratev1.ListAllocationsRequest) (*quoratev1.ListAllocationsResponse, error)
	// Watch reports changes of allocations until the context ends, report returns an error, or the servers cannot
	// continue, as client.Watch does.
	Watch(context.Context, *quoratev1.WatchEventsRequest, func(*quoratev1.WatchEventsResponse) error) error
}

// Connect returns the calls of a client.
func Connect(c *client.Client) Quorate { return connected{c.Allocations, c} }

type connected struct {
	quoratev1connect.AllocationServiceClient
	client *client.Client
}

// Watch is client.Watch.
func (c connected) Watch(
	ctx context.Context, from *quoratev1.WatchEventsRequest, report func(*quoratev1.WatchEventsResponse) error,
) error {
	if err := c.client.Watch(ctx, from, report); err != nil {
		return fmt.Errorf("watching allocations: %w", err)
	}
	return nil
}

// The reasons of problems that the loop tells apart; see Problem in decision.proto.
const (
	reasonEnded    = "ENDED"
	reasonIDTaken  = "ID_TAKEN"
	reasonNotFound = "NOT_FOUND"
)

func reasonOf(err error) string {
	problem, _ := client.ProblemOf(err)
	return problem.GetReason()
}

// isAnswer reports whether a server has answered the call. Other errors do not say whether it was carried out.
func isAnswer(err error) bool {
	if errors.Is(err, client.ErrUnavailable) {
		return false
	}
	_, denied := client.DecisionOf(err)
	problem, refused := client.ProblemOf(err)
	if denied || !refused {
		return denied
	}
	switch problem.GetReason() {
	case "NO_LEADER", "NOT_LEADER", "LEADERSHIP_LOST", "OVERLOADED", "DEADLINE", "HALTED", "SHUTTING_DOWN", "DISK_FULL",
		"NOT_UPGRADED", "BUSY", "INTERNAL":
		return false
	}
	return true
}
