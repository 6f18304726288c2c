package rpc

import (
	"context"
	"net/http"
	"slices"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// Front ends run on every node and call the API in the process. What only the leader can carry out goes to it from here, as
// a call of the public API.

// anywhere carries out writes wherever the leader is.
type anywhere struct {
	id        string
	node      Node
	peers     peers
	validator protovalidate.Validator
	traces    traces
	// count counts relayed calls.
	count func()
}

// route is how one procedure is called: here, or by a client of the leader.
type route[Client any, Request proto.Message, Answer any] struct {
	here  func(context.Context, Request) (Answer, error)
	dial  func(connect.HTTPClient, string, ...connect.ClientOption) Client
	there func(Client, context.Context, Request) (Answer, error)
}

func via[C any, R proto.Message, A any](
	here func(context.Context, R) (A, error), dial func(connect.HTTPClient, string, ...connect.ClientOption) C, there func(C, context.Context, R) (A, error),
) route[C, R, A] {
	return route[C, R, A]{here, dial, there}
}

// write checks a request and has it carried out by whoever leads. A write may be repeated under its id, so it is, for as
// long as the deadline allows, also when an answer was lost on the way.
func write[C any, R proto.Message, A any](ctx context.Context, a anywhere, r R, to route[C, R, A]) (answer A, err error) {
	if err := a.validator.Validate(r); err != nil {
		return answer, invalidRequest(err)
	}
	for {
		leader, err := a.leader(ctx)
		if err != nil {
			return answer, err
		}
		answer, err = to.ask(ctx, a, leader, r)
		if err == nil || !passes(err) || !pause(ctx, relayPause) {
			return answer, err
		}
	}
}

// ask makes one attempt.
func (to route[C, R, A]) ask(ctx context.Context, a anywhere, leader cluster.Member, r R) (answer A, err error) {
	switch {
	case leader.ID == a.id:
		return to.here(ctx, r)
	case a.peers.url(leader) == "":
		return answer, relayFailure(a.id, leader, "", errNoAddress)
	}
	client := to.dial(&http.Client{Transport: a.peers.transport}, a.peers.url(leader), a.options()...)
	answer, err = to.there(client, ctx, r)
	return answer, a.relayed(leader, err)
}

// leader waits for one as a relayed call does.
func (a anywhere) leader(ctx context.Context) (cluster.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	leader, err := a.node.WaitLeader(ctx)
	if err != nil {
		return cluster.Member{}, waitFailure(err)
	}
	return leader, nil
}

// relayed counts a call, or says what became of it.
func (a anywhere) relayed(leader cluster.Member, err error) error {
	if err == nil {
		a.count()
		return nil
	}
	failure := toFailure(toError(err))
	answered := failure.GetProblem() != nil || failure.GetDecision() != nil
	if broken := []connect.Code{connect.CodeUnavailable, connect.CodeInternal, connect.CodeUnknown}; !answered && slices.Contains(broken, connect.CodeOf(err)) {
		return relayFailure(a.id, leader, a.peers.at(leader), err)
	}
	return err
}

// passes tells whether another attempt may do better: leaders come and go, but too much work stays too much.
func passes(err error) bool {
	reason := reasonOf(err)
	return connect.CodeOf(err) == connect.CodeUnavailable && reason != cluster.Overloaded.String() && reason != cluster.NotUpgraded.String()
}

// reasonOf is the reason in the detail of an error, or empty.
func reasonOf(err error) string { return toFailure(toError(err)).GetProblem().GetReason() }

// options mark a call as relayed, so that nobody relays it again.
func (a anywhere) options() []connect.ClientOption {
	mark := func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set(relayedByHeader, a.id)
			if id := note(ctx).requestID; id != "" {
				r.Header().Set(requestIDHeader, id)
			}
			return next(ctx, r)
		}
	}
	return []connect.ClientOption{connect.WithReadMaxBytes(MaxBody), connect.WithInterceptors(append(a.traces.clients(), connect.UnaryInterceptorFunc(mark))...)}
}

// anywhere are the services of front ends.
func (s Services) anywhere(a anywhere) Services {
	return Services{
		Allocations: allocationsAnywhere{s.Allocations, a}, Trees: treesAnywhere{s.Trees, a}, Items: itemsAnywhere{s.Items, a},
	}
}

// allocationsAnywhere is the AllocationService of a front end: reads are of this node.
type allocationsAnywhere struct {
	quoratev1connect.AllocationServiceHandler

	anywhere anywhere
}

// Allocate is carried out by the leader.
func (s allocationsAnywhere) Allocate(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.Allocate, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.Allocate))
}

// BatchAllocate is carried out by the leader.
func (s allocationsAnywhere) BatchAllocate(ctx context.Context, r *quoratev1.BatchAllocateRequest) (*quoratev1.BatchAllocateResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.BatchAllocate, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.BatchAllocate))
}

// Renew is carried out by the leader.
func (s allocationsAnywhere) Renew(ctx context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.Renew, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.Renew))
}

// BatchRenew is carried out by the leader.
func (s allocationsAnywhere) BatchRenew(ctx context.Context, r *quoratev1.BatchRenewRequest) (*quoratev1.BatchRenewResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.BatchRenew, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.BatchRenew))
}

// Release is carried out by the leader.
func (s allocationsAnywhere) Release(ctx context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.Release, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.Release))
}

// BatchRelease is carried out by the leader.
func (s allocationsAnywhere) BatchRelease(ctx context.Context, r *quoratev1.BatchReleaseRequest) (*quoratev1.BatchReleaseResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.BatchRelease, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.BatchRelease))
}

// Confirm is carried out by the leader.
func (s allocationsAnywhere) Confirm(ctx context.Context, r *quoratev1.ConfirmRequest) (*quoratev1.ConfirmResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.Confirm, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.Confirm))
}

// Cancel is carried out by the leader.
func (s allocationsAnywhere) Cancel(ctx context.Context, r *quoratev1.CancelRequest) (*quoratev1.CancelResponse, error) {
	return write(ctx, s.anywhere, r, via(s.AllocationServiceHandler.Cancel, quoratev1connect.NewAllocationServiceClient, quoratev1connect.AllocationServiceClient.Cancel))
}

// treesAnywhere is the TreeService of a front end.
type treesAnywhere struct {
	quoratev1connect.TreeServiceHandler

	anywhere anywhere
}

// ApplyTrees is carried out by the leader.
func (s treesAnywhere) ApplyTrees(ctx context.Context, r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.ApplyTrees, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.ApplyTrees))
}

// SetLimits is carried out by the leader.
func (s treesAnywhere) SetLimits(ctx context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.SetLimits, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.SetLimits))
}

// DeleteTree is carried out by the leader.
func (s treesAnywhere) DeleteTree(ctx context.Context, r *quoratev1.DeleteTreeRequest) (*quoratev1.DeleteTreeResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.DeleteTree, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.DeleteTree))
}

// MoveNode is carried out by the leader.
func (s treesAnywhere) MoveNode(ctx context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.MoveNode, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.MoveNode))
}

// SetMaintenance is carried out by the leader.
func (s treesAnywhere) SetMaintenance(ctx context.Context, r *quoratev1.SetMaintenanceRequest) (*quoratev1.SetMaintenanceResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.SetMaintenance, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.SetMaintenance))
}

// RollBack is carried out by the leader.
func (s treesAnywhere) RollBack(ctx context.Context, r *quoratev1.RollBackRequest) (*quoratev1.RollBackResponse, error) {
	return write(ctx, s.anywhere, r, via(s.TreeServiceHandler.RollBack, quoratev1connect.NewTreeServiceClient, quoratev1connect.TreeServiceClient.RollBack))
}

// itemsAnywhere is the ItemService of a front end.
type itemsAnywhere struct {
	quoratev1connect.ItemServiceHandler

	anywhere anywhere
}

// UpdateItems is carried out by the leader.
func (s itemsAnywhere) UpdateItems(ctx context.Context, r *quoratev1.UpdateItemsRequest) (*quoratev1.UpdateItemsResponse, error) {
	return write(ctx, s.anywhere, r, via(s.ItemServiceHandler.UpdateItems, quoratev1connect.NewItemServiceClient, quoratev1connect.ItemServiceClient.UpdateItems))
}

// ResetItems is carried out by the leader.
func (s itemsAnywhere) ResetItems(ctx context.Context, r *quoratev1.ResetItemsRequest) (*quoratev1.ResetItemsResponse, error) {
	return write(ctx, s.anywhere, r, via(s.ItemServiceHandler.ResetItems, quoratev1connect.NewItemServiceClient, quoratev1connect.ItemServiceClient.ResetItems))
}
