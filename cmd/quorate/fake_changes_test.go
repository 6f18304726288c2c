package main

import (
	"context"
	"os"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

// addPlanEffects adds the fields that only a dry run fills.
func addPlanEffects(result *quoratev1.ConfigurationResult) {
	result.Overuses = []*quoratev1.Overuse{
		{Tree: "cern", Node: "atlas/physics", Resource: "cores", Limit: 10, Used: 15},
		{
			Tree: "cern", Node: "atlas/physics", Kind: quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS,
			HolderKind: quoratev1.HolderKind_HOLDER_KIND_USER, Holder: "sue", Limit: 2, Used: 3,
		},
	}
	result.Rooms = []*quoratev1.RoomChange{
		{Tree: "cern", Node: "atlas/physics", Resource: "cores", Before: proto.Int64(5), After: proto.Int64(0)},
		{Tree: "cern", Node: "atlas/operations", Resource: "cores", Before: proto.Int64(0), After: proto.Int64(20)},
		{Tree: "cern", Resource: "cores", Before: proto.Int64(0)},
	}
	result.Admitted = []*quoratev1.AllocationRef{refTo("big")}
	affected := func(total int64, id, cause string) *quoratev1.AffectedRequests {
		request := &quoratev1.AffectedRequest{Namespace: "default", Id: id}
		if cause != "" {
			request.By = refTo(cause)
		}
		return &quoratev1.AffectedRequests{Requests: []*quoratev1.AffectedRequest{request}, Total: total}
	}
	result.Queue = &quoratev1.QueueEffects{
		Granted: affected(250, "first", ""), Preempted: affected(1, "low", "first"),
		Revoked: affected(1, "lease", "second"), Cancelled: affected(1, "gone", ""),
		SetAside: affected(1, "large", ""),
	}
	result.QueueNotEvaluated = true
}

func (f *fake) GetConfiguration(
	_ context.Context, r *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
	f.keepRequest(r)
	answer := &adminv1.GetConfigurationResponse{Revision: 7, Read: readInfo(r.GetRead())}
	if r.GetTree() != "" {
		tree, err := fakeSubtree(r)
		answer.Trees = []*quoratev1.Tree{tree}
		return answer, err
	}
	for _, name := range []string{"cern", "laboratory", "tenants"} {
		tree, err := fakeTree(name)
		if err != nil {
			return nil, err
		}
		answer.Trees = append(answer.Trees, tree)
	}
	var err error
	answer.Access, err = fakeSection()
	return answer, err
}

func fakeSubtree(at *adminv1.GetConfigurationRequest) (*quoratev1.Tree, error) {
	tree, err := fakeTree(at.GetTree())
	if err != nil || at.GetNode() == "" {
		return tree, err
	}
	text := &quoratev1.Tree{Name: tree.GetName(), Resources: tree.GetResources()}
	for _, n := range tree.GetNodes() {
		if quota.IsWithin(n.GetPath(), at.GetNode()) {
			text.Nodes = append(text.Nodes, n)
		}
	}
	if len(text.GetNodes()) == 0 {
		return nil, connectError(connect.CodeNotFound, "there is no node cern:%s", at.GetNode())
	}
	return text, nil
}

func fakePolicies() []*quoratev1.Policy {
	return []*quoratev1.Policy{
		{Name: "lab", Base: "strict", Unset: quoratev1.UnsetRule_UNSET_RULE_ZERO, Sum: quoratev1.SumRule_SUM_RULE_UNCHECKED},
		{Name: "pool", Base: "cohort"},
	}
}

// changePolicies removes all definitions but lab, which a tree uses.
func (f *fake) changePolicies(r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	result, err := f.changeResult(r, r.ExpectedRevision)
	for _, name := range r.GetRemovePolicies() {
		if name == "lab" {
			return nil, connectError(connect.CodeFailedPrecondition,
				"policy lab cannot be removed while trees use it: cern; give them another policy first")
		}
		result.Changes = append(result.GetChanges(), &quoratev1.Change{
			Kind: quoratev1.ChangeKind_CHANGE_KIND_REMOVED, Field: "policy " + name, Before: "base cohort",
		})
	}
	return &quoratev1.ApplyTreesResponse{Result: result}, err
}

// fakeSection is the access section of the example.
func fakeSection() (*quoratev1.AccessSection, error) {
	const file = "../../examples/access.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	return m.Access, nil
}

func fakeRights() []*quoratev1.Change {
	const (
		added, changed = quoratev1.ChangeKind_CHANGE_KIND_ADDED, quoratev1.ChangeKind_CHANGE_KIND_CHANGED
		removed        = quoratev1.ChangeKind_CHANGE_KIND_REMOVED
	)
	return []*quoratev1.Change{
		{Kind: changed, Field: "access role night-shift", Before: "usage.read", After: "usage.read holders.read"},
		{Kind: added, Field: "access binding", After: "cluster-operator to group corp/sre"},
		{Kind: added, Tree: "laboratory", Field: "binding viewer", After: "everyone"},
		{
			Kind: changed, Tree: "laboratory", Node: "physics", Field: "binding node-admin",
			Before: "user corp/peter, group corp/board", After: "user corp/peter until 2027-01-01T00:00:00Z",
		},
		{
			Kind: removed, Tree: "laboratory", Node: "physics", Field: "binding broker",
			Before: "user cert/zuul max-priority 10, hold-as any, ids zuul/",
		},
	}
}

// changeAccess also replaces the bindings of the trees.
func (f *fake) changeAccess(r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil {
		result.Changes = fakeRights()
		if len(r.GetTrees()) == 0 {
			result.Changes = result.GetChanges()[:2]
		}
	}
	return &quoratev1.ApplyTreesResponse{Result: result}, err
}

func (f *fake) MoveNode(_ context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
	f.keepRequest(r)
	if r.GetNode() == "atlas" {
		return nil, connectError(connect.CodeInvalidArgument, "new_node: %q is below %q itself", r.GetNewNode(), r.GetNode())
	}
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil {
		result.Changes = []*quoratev1.Change{{
			Kind: quoratev1.ChangeKind_CHANGE_KIND_CHANGED, Tree: r.GetTree(), Node: r.GetNewNode(), Field: "path",
			Before: r.GetNode(), After: r.GetNewNode(),
		}}
	}
	return &quoratev1.MoveNodeResponse{Result: result}, err
}

func (f *fake) RollBack(_ context.Context, r *adminv1.RollBackRequest) (*adminv1.RollBackResponse, error) {
	f.keepRequest(r)
	if r.GetRevision() < 2 {
		return nil, connectError(connect.CodeFailedPrecondition, "the history reaches back to revision 2 only")
	}
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil {
		result.Changes = []*quoratev1.Change{
			{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_CHANGED, Tree: "tenants", Node: "tenant-1", Field: "limit ram",
				Before: "16Gi", After: "8Gi",
			},
			{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_REMOVED, Tree: "tenants", Field: "default ram",
				Before: "1Gi",
			},
		}
	}
	return &adminv1.RollBackResponse{Result: result}, err
}
