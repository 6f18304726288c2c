// Command goclient allocates and is denied by a client that oapi-codegen generates from the OpenAPI document of a
// server: goclient URL. The test generates package api before it runs this; nothing of it is checked in.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quorate/quorate/rpc/openapi/validate/goclient/api"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	client, err := api.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	granted, err := allocate(ctx, client, "go-1", 8)
	if err != nil {
		return err
	}
	if granted.JSON200 == nil {
		return fmt.Errorf("allocate: %s: %s", granted.Status(), granted.Body)
	}
	fmt.Println("granted", granted.JSON200.Allocation.Id, granted.JSON200.Allocation.State)

	denied, err := allocate(ctx, client, "go-2", 1_000)
	if err != nil {
		return err
	}
	if denied.JSON429 == nil {
		return fmt.Errorf("allocate too much: %s: %s", denied.Status(), denied.Body)
	}
	reason, err := denied.JSON429.Details[0].AsDecisionDetail()
	if err != nil {
		return err
	}
	limit, err := reason.Debug.Violations[0].Limit.AsInt64Text()
	if err != nil {
		return err
	}
	fmt.Println("denied", denied.JSON429.Code, "limit", limit)
	return nil
}

func allocate(
	ctx context.Context, client *api.ClientWithResponses, id string, cores int64,
) (*api.QuorateV1AllocationServiceAllocateResponse, error) {
	var amount api.Int64
	if err := amount.FromInt64Number(cores); err != nil {
		return nil, err
	}
	tree, node, mode := "cern", "atlas/physics", api.MODEREJECT
	return client.QuorateV1AllocationServiceAllocateWithResponse(ctx, nil, api.QuorateV1AllocateRequest{
		Id: &id, Mode: &mode,
		Claims: &[]api.QuorateV1Claim{{Tree: &tree, Node: &node, Amounts: &map[string]api.Int64{"cores": amount}}},
	})
}
