package boskos

import (
	"context"
	"net/http"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func (s *server) handleRelease(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	name, dest, owner := q.Get("name"), q.Get("dest"), q.Get("owner")
	if name == "" || dest == "" || owner == "" {
		return nil, badRequest("Name: %v, dest: %v, owner: %v, all of them must be set in the request.",
			name, dest, owner)
	}
	if err := s.releaseItem(r.Context(), name, dest, owner); err != nil {
		return nil, wrapAnswer(err, "Done failed: %v - %v (from %v)", name, dest, owner)
	}
	return nil, nil
}

// releaseItem tries what this node remembers, and otherwise looks who has the item.
func (s *server) releaseItem(ctx context.Context, name, dest, owner string) error {
	tried := false
	if id := s.memory.takeGrant(holding{name, owner}); id != "" {
		answer, err := s.api.Allocations.Release(ctx, &quoratev1.ReleaseRequest{
			Namespace: namespace, Id: id, ItemState: dest,
		})
		if err == nil && !answer.GetWrite().GetRepetition() || err != nil && !isLost(err) {
			return err
		}
		// Either it ended long ago, or a first attempt of this very call has ended it and the answer was lost.
		tried = answer.GetAllocation().GetState() == quoratev1.AllocationState_ALLOCATION_STATE_RELEASED
	}
	err := s.withItem(ctx, name, owner, func(item *quoratev1.Item) error { return s.giveBack(ctx, item, dest) })
	if tried && err != nil && asFailure(err).status == http.StatusUnauthorized {
		return nil
	}
	return err
}

// giveBack returns errLost if the owner had lost the item before.
func (s *server) giveBack(ctx context.Context, item *quoratev1.Item, dest string) error {
	request := &quoratev1.ReleaseRequest{
		Namespace: item.GetAllocation().GetNamespace(), Id: item.GetAllocation().GetId(), Fence: item.GetFence(),
		ItemState: dest,
	}
	alone := strings.HasPrefix(request.GetId(), onePrefix)
	if !alone {
		request.Items = []*quoratev1.ItemName{item.GetName()}
	}
	answer, err := s.api.Allocations.Release(ctx, request)
	if err != nil {
		return err
	}
	allocation := answer.GetAllocation()
	switch held := allocation.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_HELD; {
	case answer.GetWrite().GetRepetition() && allocation.GetState() != quoratev1.AllocationState_ALLOCATION_STATE_RELEASED:
		return errLost
	case alone || !held || len(resourcesOf(allocation)) > 0:
		// If it was already released, then by the same owner or by an earlier attempt of this call, so the release has
		// succeeded.
		return nil
	default: // the last item is back; what its tenant has in another tree goes with it
		_, err = s.api.Allocations.Release(ctx, &quoratev1.ReleaseRequest{
			Namespace: request.GetNamespace(), Id: request.GetId(), Fence: request.GetFence(),
		})
		return err
	}
}
