package rpc

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// placeLists are the calls that list what is at a place.
var placeLists = map[string]func(ctx context.Context, d *testServer, a as, tree, node string) error{
	"ListAllocations": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := quoratev1connect.NewAllocationServiceClient(a, d.url).
			ListAllocations(ctx, &quoratev1.ListAllocationsRequest{Tree: tree, Node: node})
		return err
	},
	"ListWaiting": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := quoratev1connect.NewAllocationServiceClient(a, d.url).
			ListWaiting(ctx, &quoratev1.ListWaitingRequest{Tree: tree, Node: node})
		return err
	},
	"ListEvents": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := quoratev1connect.NewEventServiceClient(a, d.url).
			ListEvents(ctx, &quoratev1.ListEventsRequest{Tree: tree, Node: node})
		return err
	},
	"WatchEvents": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		stream, err := quoratev1connect.NewEventServiceClient(a, d.url).
			WatchEvents(ctx, &quoratev1.WatchEventsRequest{Tree: tree, Node: node})
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		stream.Receive() // a heartbeat comes at once
		return stream.Err()
	},
	"ListScheduledLimits": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := quoratev1connect.NewTreeServiceClient(a, d.url).
			ListScheduledLimits(ctx, &quoratev1.ListScheduledLimitsRequest{Tree: tree, Node: node})
		return err
	},
	"ListRequests": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := quoratev1beta1connect.NewLimitRequestServiceClient(a, d.url).
			ListRequests(ctx, &quoratev1beta1.ListRequestsRequest{Tree: tree, Node: node})
		return err
	},
	"ListRevisions": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := adminv1connect.NewConfigurationServiceClient(a, d.url).
			ListRevisions(ctx, &adminv1.ListRevisionsRequest{Tree: tree, Node: node})
		return err
	},
	"ListCordons": func(ctx context.Context, d *testServer, a as, tree, node string) error {
		_, err := adminv1connect.NewCordonServiceClient(a, d.url).
			ListCordons(ctx, &adminv1.ListCordonsRequest{Tree: tree, Node: node})
		return err
	},
}

// TestListsRefuseUnknownPlaces: a misspelled place is an error with the name that was meant, and not an empty list. The
// list of audit records needs the right to all of them.
func TestListsRefuseUnknownPlaces(t *testing.T) {
	d := oneNode(t)
	lists := map[string]func(ctx context.Context, d *testServer, a as, tree, node string) error{
		"ListRecords": func(ctx context.Context, d *testServer, a as, tree, node string) error {
			_, err := adminv1connect.NewAuditServiceClient(a, d.url).
				ListRecords(ctx, &adminv1.ListRecordsRequest{Tree: tree, Node: node})
			return err
		},
	}
	maps.Copy(lists, placeLists)
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct{ tree, node, field, says string }{
				{"cern", "phisics/higgs", "node", "there is no node cern:phisics/higgs; did you mean cern:physics/higgs?"},
				{"cern", "physics/higs", "node", "there is no node cern:physics/higs; did you mean cern:physics/higgs?"},
				{"cern", "physics/alice", "node", "there is no node cern:physics/alice; the nearest that exists is cern:physics"},
				{"cren", "physics", "tree", "there is no tree cren; did you mean cern?"},
				{"nothing", "", "tree", "there is no tree nothing"},
			} {
				wantRefused(t, list(t.Context(), d, "", c.tree, c.node), connect.CodeNotFound, c.field, c.says)
			}
			for _, node := range []string{"", "physics", "physics/higgs"} {
				if err := list(t.Context(), d, "", "cern", node); err != nil {
					t.Errorf("cern:%s: %v", node, err)
				}
			}
		})
	}
}

// TestListsDoNotTellWhatExists: a caller gets the same answer about a node that it does not see and about one that does
// not exist.
func TestListsDoNotTellWhatExists(t *testing.T) {
	d := accessNode(t, access.Guarded)
	spec := quota.TreeSpec{Name: "guarded", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	seen := []access.Binding{{Role: "viewer", To: []access.Subject{{Kind: access.AccountSubject, Name: "plain"}}}}
	spec.Nodes = []quota.NodeSpec{
		{Policy: "strict"}, {Path: "physics", Bindings: seen}, {Path: "secret"}, {Path: "secret/part"},
	}
	if outcomes, _ := d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); outcomes[0].Refused != nil {
		t.Fatal(outcomes[0].Refused)
	}
	plain := byToken(plainToken)
	for name, list := range placeLists {
		t.Run(name, func(t *testing.T) {
			for hidden, absent := range map[string]string{"secret": "secreu", "secret/part": "secreu/part"} {
				exists, missing := list(t.Context(), d, plain, "guarded", hidden), list(t.Context(), d, plain, "guarded", absent)
				wantRefused(t, exists, connect.CodeNotFound, "node", "or you may not see it")
				if got := strings.ReplaceAll(fmt.Sprint(missing), absent, hidden); got != exists.Error() {
					t.Errorf("hidden: %v\nabsent: %v", exists, missing)
				}
			}
			wantRefused(t, list(t.Context(), d, plain, "guarded", "secre"), connect.CodeNotFound, "node",
				"there is no node guarded:secre, or you may not see it; the nearest that exists is guarded")
			wantRefused(t, list(t.Context(), d, plain, "guarded", "phisics"), connect.CodeNotFound, "node",
				"did you mean guarded:physics?")
			if err := list(t.Context(), d, plain, "guarded", "physics"); err != nil {
				t.Errorf("what it sees: %v", err)
			}
		})
	}
}
