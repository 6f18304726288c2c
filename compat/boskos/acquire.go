package boskos

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// requestTTL is how long a request with an id keeps its place in the queue without being repeated, as in the original,
// and how long it has to come for what was granted to it meanwhile.
const requestTTL = 30 * time.Second

type acquisition struct {
	rtype, state, dest, owner, requestID string
}

func (s *server) handleAcquire(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	a := acquisition{q.Get("type"), q.Get("state"), q.Get("dest"), q.Get("owner"), q.Get("request_id")}
	if a.rtype == "" || a.state == "" || a.dest == "" || a.owner == "" {
		return nil, badRequest("Bad request: Type: %v, state: %v, dest: %v, owner: %v, "+
			"all of them must be set in the request.", a.rtype, a.state, a.dest, a.owner)
	}
	began := time.Now()
	granted, err := s.acquireOne(r.Context(), a)
	if err != nil {
		return nil, wrapAnswer(err, "Acquire failed")
	}
	s.metrics.observeGrant(a, s.arrivals.takeArrival(granted.id, began))
	s.memory.noteGrant(holding{granted.resource.Name, a.owner}, granted.id)
	return json.Marshal(granted.resource)
}

func (s *server) acquireOne(ctx context.Context, a acquisition) (granted *grant, err error) {
	err = s.layout.withLayout(ctx, func(l *layout) error {
		at, known := l.types[a.rtype]
		if !known {
			return errUnknown
		}
		granted, err = s.acquireAt(ctx, a, at, l.tenantOf(a.owner))
		return err
	})
	if isUnknown(err) {
		return nil, noType(a.rtype)
	}
	return granted, err
}

type grant struct {
	id       string
	resource *resource
}

func (s *server) acquireAt(ctx context.Context, a acquisition, at place, t tenant) (*grant, error) {
	request := &quoratev1.AllocateRequest{
		Claims: t.claimsFor(map[string][]*quoratev1.ItemPick{
			at.tree: {{Resource: a.rtype, Count: 1, State: a.state, HeldState: a.dest}},
		}),
		Principal: &quoratev1.Principal{User: a.owner},
	}
	granted, err := s.allocateItem(ctx, a, request)
	switch {
	case isDenial(err):
		return nil, notAvailable(a.rtype)
	case err != nil:
		return nil, err
	}
	allocation := granted.GetAllocation()
	if allocation.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
		s.arrivals.noteArrival(allocation.GetId(), allocation.GetWaiting().GetArrivedAt().AsTime())
		return nil, notAvailable(a.rtype)
	}
	resources := resourcesOf(allocation)
	if len(resources) != 1 {
		return nil, connect.NewError(connect.CodeInternal, errNotOne)
	}
	if at.lifespan {
		if err := s.addExpiration(ctx, at.tree, resources[0]); err != nil {
			return nil, err
		}
	}
	return &grant{allocation.GetId(), resources[0]}, nil
}

// allocateItem allocates an item. A request with a request id waits, under an allocation id that every repetition has
// too: a repetition keeps the position in the queue, or gets the same item again. A request without one is denied if it
// does not fit or other requests wait.
func (s *server) allocateItem(
	ctx context.Context, a acquisition, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if a.requestID == "" {
		r.Namespace, r.Id, r.Mode = namespace, newID(onePrefix), quoratev1.Mode_MODE_REJECT
		return s.api.Allocations.Allocate(ctx, r)
	}
	r.Mode, r.KeepMs = quoratev1.Mode_MODE_WAIT, requestTTL.Milliseconds()
	ids := newAllocationIDs(a, r)
	for n := 0; ; {
		r.Namespace, r.Id = namespace, ids.idOf(n)
		granted, err := s.allocateOrJoin(ctx, r)
		if connect.CodeOf(err) != connect.CodeFailedPrecondition {
			return granted, err
		}
		if n, err = ids.firstUnended(n, func(n int) (bool, error) { return s.hasEnded(ctx, ids.idOf(n)) }); err != nil {
			return nil, err
		}
	}
}

// addExpiration adds when an item would be removed if it were released now. Only dynamic types with a lifespan have it.
func (s *server) addExpiration(ctx context.Context, tree string, r *resource) error {
	items, err := s.listAllItems(ctx, &quoratev1.ListItemsRequest{Tree: tree, Resource: r.Type, Name: r.Name})
	for _, item := range items {
		r.noteExpiry(item)
	}
	return err
}
