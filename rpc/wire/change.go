package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// changeKinds is the one table of kinds of change.
var changeKinds = map[quota.ChangeKind]quoratev1.ChangeKind{
	quota.Added:   quoratev1.ChangeKind_CHANGE_KIND_ADDED,
	quota.Changed: quoratev1.ChangeKind_CHANGE_KIND_CHANGED,
	quota.Removed: quoratev1.ChangeKind_CHANGE_KIND_REMOVED,
}

func fromChanges(changes []quota.Change) []*quoratev1.Change {
	wire := make([]*quoratev1.Change, len(changes))
	for i, c := range changes {
		wire[i] = &quoratev1.Change{
			Kind: changeKinds[c.Kind], Tree: c.Tree, Node: c.Node, Field: c.Field,
			Before: c.Before, After: c.After,
		}
	}
	return wire
}

// FromConfiguration converts the result of a change of configuration.
func FromConfiguration(c quota.Configuration) *quoratev1.ConfigurationResult {
	wire := &quoratev1.ConfigurationResult{
		Revision: c.Revision, Changes: fromChanges(c.Changes), Overuses: fromOver(c.Over),
	}
	if c.Effects != nil {
		wire.Rooms, wire.Admitted = fromRooms(c.Effects.Rooms), FromIDs(c.Effects.Admitted)
		wire.Queue, wire.QueueNotEvaluated = fromQueueEffects(c.Effects.Queue), c.Effects.Unjudged
	}
	return wire
}

func fromOver(list []quota.Overuse) []*quoratev1.Overuse {
	var shown []*quoratev1.Overuse
	for _, o := range list {
		shown = append(shown, &quoratev1.Overuse{
			Tree: o.Tree, Node: o.Node, Resource: o.Resource, Limit: int64(o.Limit), Used: int64(o.Used),
			Kind: violationKinds[o.Kind], HolderKind: holderKinds[o.Holder.Kind], Holder: o.Holder.Name,
			IsAdvisory: o.IsAdvisory,
		})
	}
	return shown
}

func fromQueueEffects(e *quota.QueueEffects) *quoratev1.QueueEffects {
	if e == nil {
		return nil
	}
	return &quoratev1.QueueEffects{
		Granted: fromAffected(e.Granted), Preempted: fromAffected(e.Preempted), Revoked: fromAffected(e.Revoked),
		Cancelled: fromAffected(e.Cancelled), SetAside: fromAffected(e.SetAside),
	}
}

// fromAffected is nil for none.
func fromAffected(a quota.Affected) *quoratev1.AffectedRequests {
	if a.Total == 0 {
		return nil
	}
	wire := &quoratev1.AffectedRequests{Total: int64(a.Total)}
	for _, r := range a.List {
		namespace, id := quota.SplitID(r.ID)
		wire.Requests = append(wire.Requests, &quoratev1.AffectedRequest{Namespace: namespace, Id: id, By: FromID(r.By)})
	}
	return wire
}

func fromRooms(rooms []quota.RoomChange) []*quoratev1.RoomChange {
	var wire []*quoratev1.RoomChange
	for _, r := range rooms {
		change := &quoratev1.RoomChange{Tree: r.Tree, Node: r.Node, Resource: r.Resource}
		if r.BeforeBounded {
			change.Before = new(int64(r.Before))
		}
		if r.AfterBounded {
			change.After = new(int64(r.After))
		}
		wire = append(wire, change)
	}
	return wire
}

// FromRevision converts a revision of the history.
func FromRevision(r quota.Revision) *quoratev1.Revision {
	shown := &quoratev1.Revision{
		Revision: r.Number, Actor: r.Actor, Reason: r.Reason, AppliedAt: FromWall(r.Wall), RequestId: r.RequestID,
		Changes: fromChanges(r.Changes), ChangeCount: int32(r.ChangeCount),
	}
	if r.Subtree != nil {
		shown.Tree, shown.Node = r.Subtree.Tree, r.Subtree.Node
	}
	if r.Request != nil {
		shown.Request = &quoratev1.ApprovedRequest{
			Id: r.Request.Number, Asker: r.Request.Asker, Approvers: r.Request.Approvers,
		}
	}
	return shown
}

// configurationRequest is what the changes of configuration have in common.
type configurationRequest interface {
	proto.Message
	GetActor() string
	GetReason() string
	GetRequestId() string
	GetDryRun() bool
}

// ToMeta takes a blank reason for none: a tree that requires one asks for words.
func ToMeta(r configurationRequest, expected *uint64) (quota.ChangeMeta, error) {
	digest, err := requestFingerprint(r)
	return quota.ChangeMeta{
		Actor: r.GetActor(), Reason: strings.TrimSpace(r.GetReason()), RequestID: r.GetRequestId(), Fingerprint: digest,
		ExpectedRevision: expected,
	}, err
}

// requestFingerprint is a digest of what a change asks for; empty without a request id. Who asks, why, and under
// which name is not part of it, and neither is the expected revision: after the first success a repeat cannot meet it
// any more.
func requestFingerprint(r configurationRequest) (string, error) {
	if r.GetRequestId() == "" {
		return "", nil
	}
	content := proto.Clone(r).ProtoReflect()
	fields := content.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"request_id", "actor", "reason", "dry_run", "expected_revision"} {
		content.Clear(fields.ByName(name))
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(content.Interface())
	if err != nil {
		return "", InvalidField("", "the request cannot be encoded again: %v", err)
	}
	sum := sha256.Sum256(append([]byte(content.Descriptor().FullName()), encoded...))
	return hex.EncodeToString(sum[:]), nil
}

// NodeNames are the fields of a message that name a node.
type NodeNames interface {
	GetTree() string
	GetNode() string
}

// CheckNode refuses a node without a tree: what is meant for a node would otherwise be done everywhere.
func CheckNode(r NodeNames) error {
	if r.GetTree() == "" && r.GetNode() != "" {
		return InvalidField("node", "it needs tree: name the tree of %q", quota.Clip(r.GetNode()))
	}
	return nil
}

// ToSubtree is the subtree that a request names, or nil if it names no tree.
func ToSubtree(r NodeNames) *quota.Subtree {
	if r.GetTree() == "" {
		return nil
	}
	return &quota.Subtree{Tree: r.GetTree(), Node: r.GetNode()}
}

// toSubtreeText makes the text of a subtree the tree of a command. The ledger names its fields by that tree.
func toSubtreeText(r *quoratev1.ApplyTreesRequest, command *quota.ApplyTrees, moved FieldPaths) error {
	const inCommand, inRequest = "trees[0]", "subtree.text"
	if r.GetSubtree() == nil {
		return nil
	}
	if len(r.GetTrees()) > 0 {
		return InvalidField("trees", "it is empty with subtree, which has a text of its own")
	}
	paths := FieldPaths{}
	spec, err := toTreeSpec(r.GetSubtree().GetText(), inRequest, paths)
	if err != nil {
		return err
	}
	command.At, command.Trees = ToSubtree(r.GetSubtree()), []quota.TreeSpec{spec}
	moved[inCommand] = inRequest
	for sorted, written := range paths {
		moved[inCommand+strings.TrimPrefix(sorted, inRequest)] = written
	}
	return nil
}

// ToApplyTrees also returns how the lists of the request were sorted.
func ToApplyTrees(r *quoratev1.ApplyTreesRequest) (quota.ApplyTrees, FieldPaths, error) {
	moved := FieldPaths{}
	meta, err := ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return quota.ApplyTrees{}, nil, err
	}
	command := quota.ApplyTrees{
		Meta: meta, Trees: make([]quota.TreeSpec, len(r.GetTrees())), Prune: r.GetPrune(),
		Policies:       toPolicySpecs(r.GetPolicies(), "policies", moved),
		RemovePolicies: toSortedNames(r.GetRemovePolicies(), "remove_policies", moved),
		KeepAccess:     r.GetKeepAccess(),
	}
	if err := toSubtreeText(r, &command, moved); err != nil {
		return quota.ApplyTrees{}, nil, err
	}
	for i, t := range r.GetTrees() {
		if command.Trees[i], err = toTreeSpec(t, fmt.Sprintf("trees[%d]", i), moved); err != nil {
			return quota.ApplyTrees{}, nil, err
		}
	}
	if r.GetAccess() != nil {
		section, err := ToSection("access", r.GetAccess())
		if err != nil {
			return quota.ApplyTrees{}, nil, err
		}
		command.Access = &section
	}
	return command, moved, nil
}
