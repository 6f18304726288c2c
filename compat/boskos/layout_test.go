package boskos

import (
	"context"
	"testing"
	"testing/synctest"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// leaderless has one tree with cars. Once it has lost its leader it answers only reads that need none.
type leaderless struct{ lost chan struct{} }

func (t leaderless) GetTree(ctx context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	select {
	case <-t.lost:
		if r.GetRead().GetConsistency() != quoratev1.Consistency_CONSISTENCY_STALE {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	default:
	}
	if r.GetName() != TreeName {
		return nil, errUnknown
	}
	return &quoratev1.GetTreeResponse{Tree: &quoratev1.Tree{
		Name: TreeName, Resources: []*quoratev1.Resource{{Name: "car", Unit: quoratev1.Unit_UNIT_ITEMS}},
	}}, nil
}

// TestWaitingForALeaderDelaysNoOtherCall: a request for an unknown type waits, because only a leader can confirm that
// the type does not exist.
func TestWaitingForALeaderDelaysNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trees := leaderless{make(chan struct{})}
		l := newLayouts(trees, TreeName)
		find := func(ctx context.Context, name string) error {
			return l.withLayout(ctx, func(known *layout) error {
				if _, found := known.types[name]; !found {
					return errUnknown
				}
				return nil
			})
		}
		if err := find(t.Context(), "car"); err != nil {
			t.Fatal(err)
		}
		close(trees.lost)
		waiting, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- find(waiting, "boat") }()
		synctest.Wait()
		if err := find(t.Context(), "car"); err != nil {
			t.Errorf("a known type: %v", err)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("a type that does not exist was found")
		}
	})
}
