package quota

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// policy is the policy of the trees that a Manager has.
const policy = "borrowing"

// mostAttempts bounds how often a change is planned again because the configuration has changed meanwhile.
const mostAttempts = 10

type configuration struct {
	revision uint64
	list     []*quoratev1.Tree // by name
}

// tree takes the original name; nil if there is none.
func (c *configuration) tree(original string) *quoratev1.Tree {
	name, err := compat.Name(original)
	i := slices.IndexFunc(c.list, func(t *quoratev1.Tree) bool { return t.GetName() == name })
	if err != nil || i < 0 {
		return nil
	}
	return c.list[i]
}

func (c *configuration) inForest(original string) []*quoratev1.Tree {
	name, err := compat.Name(original)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.list), func(t *quoratev1.Tree) bool { return t.GetForest() != name })
}

// readTrees returns the present trees. While the revision stays the same, only the list of trees is read, which is
// small.
func (m *Manager) readTrees() (*configuration, error) {
	summary, err := m.client.Trees.ListTrees(context.Background(), &quoratev1.ListTreesRequest{})
	if err != nil {
		return nil, err
	}
	if m.known != nil && m.known.revision == summary.GetRevision() {
		return m.known, nil
	}
	all, err := m.client.Configuration.GetConfiguration(context.Background(), &adminv1.GetConfigurationRequest{})
	if err != nil {
		return nil, err
	}
	m.known = &configuration{
		revision: all.GetRevision(),
		list: slices.DeleteFunc(all.GetTrees(), func(t *quoratev1.Tree) bool {
			return t.GetPolicy() != policy
		}),
	}
	return m.known, nil
}

// change plans a change of trees and applies it, all or nothing. It plans again if the configuration was changed
// meanwhile. A plan without trees changes nothing.
func (m *Manager) change(plan func(now *configuration) ([]*quoratev1.Tree, error)) error {
	var failure error
	for range mostAttempts {
		now, err := m.readTrees()
		if err != nil {
			return err
		}
		trees, err := plan(now)
		if err != nil || len(trees) == 0 {
			return err
		}
		_, failure = m.client.Trees.ApplyTrees(context.Background(), &quoratev1.ApplyTreesRequest{
			Trees: trees, ExpectedRevision: &now.revision, KeepAccess: true,
		})
		if problem, _ := client.ProblemOf(failure); problem.GetReason() != "REVISION_MISMATCH" {
			return failure
		}
	}
	return failure
}

// isEqual reports whether applying a tree would change nothing.
func (m *Manager) isEqual(tree *quoratev1.Tree) (bool, error) {
	answer, err := m.client.Trees.ApplyTrees(context.Background(), &quoratev1.ApplyTreesRequest{
		Trees: []*quoratev1.Tree{tree}, DryRun: true, KeepAccess: true,
	})
	var refusal *connect.Error
	if errors.As(err, &refusal) && refusal.Code() == connect.CodeFailedPrecondition {
		return false, nil // the change would be refused, so there is one
	}
	return len(answer.GetResult().GetChanges()) == 0, err
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
