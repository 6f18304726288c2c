package rpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/handlers"
)

// largeTree has so many nodes that reading it counts as expensive.
func largeTree() *quoratev1.ApplyTreesRequest {
	tree := &quoratev1.Tree{Name: "large", Resources: []*quoratev1.Resource{{Name: "cores"}}}
	for i := range handlers.SmallRead {
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: fmt.Sprintf("n%05d", i)})
	}
	return &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}
}

// TestExpensiveReadsWaitForTheirTurn: while one expensive read runs, the others wait and cheap reads do not.
func TestExpensiveReadsWaitForTheirTurn(t *testing.T) {
	d := limited(t, admission.Limits{})
	if _, err := d.trees().ApplyTrees(t.Context(), largeTree()); err != nil {
		t.Fatal(err)
	}
	leave, err := d.admission.Expensive.WaitTurn(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	trees, allocations, items := d.trees(), d.allocations(), d.items()
	want := request("x", "cern", 1)
	for name, read := range map[string]struct {
		waits bool
		call  func(context.Context) error
	}{
		"a plan": {true, func(ctx context.Context) error {
			_, err := trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{Trees: largeTree().GetTrees(), DryRun: true})
			return err
		}},
		"an explanation": {true, func(ctx context.Context) error {
			_, err := allocations.Explain(ctx,
				&quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Request{Request: want}})
			return err
		}},
		"waiting requests": {true, func(ctx context.Context) error {
			_, err := allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{})
			return err
		}},
		"the configuration": {true, func(ctx context.Context) error {
			_, err := trees.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{})
			return err
		}},
		"a large tree": {true, func(ctx context.Context) error {
			_, err := trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: "large"})
			return err
		}},
		"usage of a large tree": {true, func(ctx context.Context) error {
			_, err := trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "large", Subtree: true})
			return err
		}},
		"many revisions": {true, func(ctx context.Context) error {
			_, err := trees.ListRevisions(ctx, &adminv1.ListRevisionsRequest{PageSize: 100})
			return err
		}},
		"many events": {true, func(ctx context.Context) error {
			_, err := allocations.ListEvents(ctx, &quoratev1.ListEventsRequest{PageSize: 1000})
			return err
		}},
		"many allocations": {true, func(ctx context.Context) error {
			_, err := allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{PageSize: 1000})
			return err
		}},
		"users": {true, func(ctx context.Context) error {
			_, err := trees.ListPrincipals(ctx,
				&quoratev1.ListPrincipalsRequest{Tree: "cern", Kind: quoratev1.HolderKind_HOLDER_KIND_USER})
			return err
		}},
		"a small tree": {false, func(ctx context.Context) error {
			_, err := trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: "cern"})
			return err
		}},
		"usage of a node": {false, func(ctx context.Context) error {
			_, err := trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "large"})
			return err
		}},
		"usage of a small tree": {false, func(ctx context.Context) error {
			_, err := trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "cern", Subtree: true})
			return err
		}},
		"trees": {false, func(ctx context.Context) error {
			_, err := trees.ListTrees(ctx, &quoratev1.ListTreesRequest{})
			return err
		}},
		"revisions": {false, func(ctx context.Context) error {
			_, err := trees.ListRevisions(ctx, &adminv1.ListRevisionsRequest{})
			return err
		}},
		"events": {false, func(ctx context.Context) error {
			_, err := allocations.ListEvents(ctx, &quoratev1.ListEventsRequest{})
			return err
		}},
		"allocations": {false, func(ctx context.Context) error {
			_, err := allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{})
			return err
		}},
		"a page of items": {false, func(ctx context.Context) error {
			_, err := items.ListItems(ctx, &quoratev1.ListItemsRequest{Tree: "cern"})
			return err
		}},
		"an allocation": {
			false, func(ctx context.Context) error { _, err := allocations.Allocate(ctx, want); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			if read.waits {
				ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
			}
			defer cancel()
			err := read.call(ctx)
			if waited := connect.CodeOf(err) == connect.CodeUnavailable ||
				connect.CodeOf(err) == connect.CodeDeadlineExceeded; err != nil && !waited || waited != read.waits {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTurnsEndWithTheirAnswers: an expensive read ends its turn with its answer or error, in every protocol. Otherwise
// the second call would never begin.
func TestTurnsEndWithTheirAnswers(t *testing.T) {
	d := limited(t, admission.Limits{})
	if _, err := d.trees().ApplyTrees(t.Context(), largeTree()); err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]connect.ClientOption{
		nil,
		{connect.WithGRPC()},
		{connect.WithGRPCWeb()},
		{connect.WithProtoJSON()},
	} {
		for range 3 {
			if _, err := d.trees(options...).GetConfiguration(t.Context(),
				&adminv1.GetConfigurationRequest{}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.trees(options...).GetTree(t.Context(),
				&quoratev1.GetTreeRequest{Name: "large"}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.allocations(options...).ListWaiting(t.Context(),
				&quoratev1.ListWaitingRequest{Tree: "no"}); connect.CodeOf(err) == connect.CodeUnavailable {
				t.Fatal(err)
			}
			refused := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{Name: "empty"}}, DryRun: true}
			if _, err := d.trees(options...).ApplyTrees(t.Context(),
				refused); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Fatal(err)
			}
		}
	}
	// In-process calls, as front ends send them.
	for range 3 {
		if _, err := d.services.Configuration.GetConfiguration(t.Context(), &adminv1.GetConfigurationRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	reads := d.admission.Expensive
	if reads.IsRunning() || reads.CountWaiting() != 0 || d.admission.Limiters.Expensive.InUse.Load() != 0 {
		t.Errorf("running %v, %d callers wait, %d inside", reads.IsRunning(), reads.CountWaiting(),
			d.admission.Limiters.Expensive.InUse.Load())
	}
}

// TestLargeRequestsAreDecodedInTurn: large requests are decoded one at a time and small ones do not wait. The turn ends
// before the request is executed, also if it is refused.
func TestLargeRequestsAreDecodedInTurn(t *testing.T) {
	d := limited(t, admission.Limits{})
	leave, err := d.admission.Decoding.WaitTurn(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	large := largeTree()
	for i, n := range large.GetTrees()[0].GetNodes() {
		n.Path = fmt.Sprintf("node-%050d", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = d.trees().ApplyTrees(ctx, large)
	if code := connect.CodeOf(err); code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded {
		t.Errorf("a large request: %v", err)
	}
	if _, err := d.allocations().Allocate(t.Context(), request("x", "cern", 1)); err != nil {
		t.Errorf("a small request: %v", err)
	}
	leave()
	held := make(chan struct{})
	d.node.proposing = func(context.Context) error {
		if d.admission.Decoding.IsRunning() {
			t.Error("the turn goes on while the request is carried out")
		}
		close(held)
		return nil
	}
	if _, err := d.trees().ApplyTrees(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	<-held
	large.Trees = append(large.Trees, &quoratev1.Tree{Name: "no name"})
	for range 2 {
		if _, err := d.trees().ApplyTrees(t.Context(), large); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Error(err)
		}
	}
}
