//go:build unix

package bench

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Ledger is what the measurements left in their tree.
type Ledger struct {
	Tree string `json:"tree"`
	// LeftAllocations counts allocations and waiting requests that the measurements left and that were then released.
	LeftAllocations int `json:"left_allocations"`
	// UsageIsZero says that no node of the tree held anything when the tree was deleted.
	UsageIsZero bool `json:"usage_is_zero"`
	TreeDeleted bool `json:"tree_deleted"`
	// Problem says what went wrong.
	Problem string `json:"problem,omitempty"`
}

// cleanUp releases what an interrupted measurement left, checks that the usage is zero, and deletes the tree, also when
// ctx has ended.
func (s *session) cleanUp(ctx context.Context, c *cli.Env) Ledger {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	ledger := Ledger{Tree: s.tree}
	for _, step := range []func(context.Context, *Ledger) error{s.releaseLeft, s.checkUsage, s.deleteTree} {
		if err := step(ctx, &ledger); err != nil {
			ledger.Problem = cli.ErrorText(err)
			break
		}
	}
	return ledger
}

func (s *session) releaseLeft(ctx context.Context, ledger *Ledger) error {
	for {
		ids, err := s.listLeft(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := s.releaseBatch(ctx, ids); err != nil {
			return err
		}
		ledger.LeftAllocations += len(ids)
	}
}

// listLeft returns at most 1,000 ids of allocations or waiting requests of the tree.
func (s *session) listLeft(ctx context.Context) ([]string, error) {
	const pageSize = 1000
	var ids []string
	waiting, err := s.quorate.Allocations.ListWaiting(ctx,
		&quoratev1.ListWaitingRequest{Tree: s.tree, PageSize: pageSize})
	for _, r := range waiting.GetRequests() {
		ids = append(ids, r.GetAllocation().GetId())
	}
	if err != nil || len(ids) > 0 {
		return ids, err // requests that wait go first, lest they be granted
	}
	held, err := s.quorate.Allocations.ListAllocations(ctx,
		&quoratev1.ListAllocationsRequest{Tree: s.tree, PageSize: pageSize})
	for _, a := range held.GetAllocations() {
		ids = append(ids, a.GetId())
	}
	return ids, err
}

func (s *session) checkUsage(ctx context.Context, ledger *Ledger) error {
	request := &quoratev1.GetUsageRequest{Tree: s.tree, Subtree: true, PageSize: 1000}
	for page, err := range client.Pages(ctx, s.quorate.Trees.GetUsage, request) {
		if err != nil {
			return err
		}
		for _, node := range page.GetNodes() {
			for _, r := range node.GetResources() {
				if r.GetOwn() != 0 || r.GetSubtree() != 0 {
					return fmt.Errorf("node %q still holds %d of %s", node.GetNode(), r.GetSubtree(), r.GetResource())
				}
			}
		}
	}
	ledger.UsageIsZero = true
	return nil
}

func (s *session) deleteTree(ctx context.Context, ledger *Ledger) error {
	_, err := s.quorate.Trees.DeleteTree(ctx,
		&quoratev1.DeleteTreeRequest{Name: s.tree, Actor: benchActor, Reason: "measured"})
	ledger.TreeDeleted = err == nil
	return err
}

// deleteUnused deletes the tree if it was made although the answer did not arrive.
func (s *session) deleteUnused(ctx context.Context, c *cli.Env) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	ledger := Ledger{Tree: s.tree}
	if err := s.deleteTree(ctx, &ledger); err != nil && connect.CodeOf(err) != connect.CodeNotFound {
		c.Messagef("tree %s may be left behind: %s", s.tree, cli.ErrorText(err))
	}
}
