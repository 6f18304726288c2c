package rpc

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestUsageInPages(t *testing.T) {
	d := oneNode(t)
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics/higgs", 8)); err != nil {
		t.Fatal(err)
	}
	var seen []string
	ask := &quoratev1.GetUsageRequest{Tree: "cern", Subtree: true, PageSize: 3}
	for {
		page, err := d.trees().GetUsage(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.GetNodes() {
			r := n.GetResources()[0]
			seen = append(
				seen, fmt.Sprintf("%s %d/%d free %d", n.GetNode(), r.GetSubtree(), r.GetEffective().GetAmount(),
					r.GetHeadroom()))
		}
		if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
			break
		}
	}
	want := " 8/100 free 92|operations 0/80 free 80|physics 8/20 free 12|physics/higgs 8/10 free 2"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAllocationsInPages(t *testing.T) {
	d := oneNode(t)
	for i := range 5 {
		r := request(fmt.Sprint("a", i), "cern:operations", 1)
		r.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
		if _, err := d.allocations().Allocate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ask *quoratev1.ListAllocationsRequest) (ids string) {
		for {
			page, err := d.allocations(connect.WithHTTPGet()).ListAllocations(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.GetAllocations() {
				ids += a.GetId() + " "
			}
			if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
				return ids
			}
		}
	}
	if got := list(&quoratev1.ListAllocationsRequest{PageSize: 2}); got != "a0 a1 a2 a3 a4 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListAllocationsRequest{
		Tree: "cern", Node: "operations",
		Labels: map[string]string{"odd": "1"}, PageSize: 1,
	}); got != "a1 a3 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListAllocationsRequest{Tree: "cern", Node: "physics"}); got != "" {
		t.Errorf("got %s", got)
	}
	_, err := d.allocations().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{Node: "physics"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a node without a tree: %v", err)
	}
	_, err = d.allocations().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{PageToken: "nonsense"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument || problemOf(t, err).GetField() != "page_token" {
		t.Errorf("a made-up token: %v", err)
	}
}
