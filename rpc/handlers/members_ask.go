package handlers

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cluster"
)

// standingPatience is how long the other nodes may take to say how they stand.
const standingPatience = time.Second

// askMembers adds to all members what they say of themselves now. The leader's view of their health is up to two
// seconds old: one that does not answer now is not healthy.
func (s ClusterService) askMembers(ctx context.Context, list []*adminv1.Member) {
	ctx, cancel := context.WithTimeout(ctx, standingPatience)
	defer cancel()
	known := map[string]cluster.Member{}
	for _, m := range s.Node.Members() {
		known[m.ID] = m
	}
	var asked sync.WaitGroup
	for _, shown := range list {
		if m, found := known[shown.GetId()]; found {
			asked.Go(func() { s.askMember(ctx, m, shown) })
		}
	}
	asked.Wait()
	for _, shown := range list {
		if !shown.GetReachable() || shown.GetLastIndex() == 0 {
			shown.Healthy, shown.StableSinceAt = false, nil
		}
	}
}

func (s ClusterService) askMember(ctx context.Context, m cluster.Member, shown *adminv1.Member) {
	if m.ID == s.ID {
		fillMember(shown, s.ownStanding())
		return
	}
	standing, err := s.Peers.GetStanding(ctx, m)
	switch {
	case err != nil:
		shown.Problem = cmp.Or(shown.GetProblem(),
			fmt.Sprintf("%s does not answer at %q: %v", m.ID, s.Peers.AddressOf(m), err))
	case standing.GetId() != m.ID:
		shown.Problem = fmt.Sprintf("%s answers at %q, which is the address of %s", standing.GetId(),
			s.Peers.AddressOf(m), m.ID)
	default:
		fillMember(shown, standing)
	}
}
