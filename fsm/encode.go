package fsm

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// Bounds of one log entry.
const (
	MaxEntryBytes    = 4 << 20
	MaxEntryCommands = 1024
)

// typicalCommand is how many bytes a command begins with when it is encoded.
const typicalCommand = 128

// Part is encoded commands of a log entry, with the format that their reader must understand.
type Part struct {
	Data   []byte
	Format uint32
	// Level and Checkpoint are set in parts without commands: see RaiseLevel and Checkpoint.
	Level      uint32
	Checkpoint bool

	// commands is the number of commands in Data, and caller who asks for them, encoded; nil for no caller.
	commands int
	caller   []byte
}

// Size is the largest number of bytes that the part adds to an entry.
func (p Part) Size() int { return len(p.Data) + len(p.caller) + runOverhead }

// RaiseLevel is the part of an entry that permits formats up to level in the log from then on. A member that does not
// know the level halts there.
func RaiseLevel(level uint32) Part { return Part{Format: quota.FirstFormat, Level: level} }

// Checkpoint is the part of an entry after which each replica computes the digest of its state.
func Checkpoint() Part { return Part{Format: quota.FirstFormat, Checkpoint: true} }

// EncodeCommands encodes the commands of one caller, nil for none, as a part of a log entry. Encoding is most of the
// work of a proposal, and callers of this function can do it concurrently, before the commands are assigned to an
// entry. It fails for more than MaxEntryCommands, and for a caller that [access.Caller.Check] refuses.
func (f *Formats) EncodeCommands(proposer *access.Caller, commands []quota.Command) (Part, error) {
	if n := len(commands); n < 1 || n > MaxEntryCommands {
		return Part{}, fmt.Errorf("an entry carries 1 to %d commands, not %d", MaxEntryCommands, n)
	}
	caller, err := encodeCaller(proposer, slices.ContainsFunc(commands, isRecorded))
	if err != nil {
		return Part{}, err
	}
	part := Part{Format: quota.FirstFormat, commands: len(commands), caller: caller}
	for _, c := range commands {
		part.Format = max(part.Format, f.neededBy(c))
	}
	if data, ok := appendCommands(make([]byte, 0, typicalCommand*len(commands)), commands); ok {
		part.Data = data
		return part, nil
	}
	part.Data, err = marshalEntry(nil, &logv1.Entry{Commands: each(commands, encodeCommand)})
	return part, err
}

// EncodeCommands is [Formats.EncodeCommands] with the formats of this version.
func EncodeCommands(caller *access.Caller, commands []quota.Command) (Part, error) {
	return ownFormats.EncodeCommands(caller, commands)
}

// JoinEntry joins parts from EncodeCommands, in their order, into the data of one log entry. They share the stamp and
// get the newest of their formats; each command keeps its caller. It fails if the entry would exceed MaxEntryBytes,
// which it never does if the sizes of the parts and 64 more are no more than that. The caller of this function must
// bound the number of commands.
func JoinEntry(s quota.Stamp, parts ...Part) ([]byte, error) {
	head := &logv1.Entry{Format: quota.FirstFormat, TimeMs: int64(s.At), WallMs: s.Wall}
	pieces := make([][]byte, 1, 2+len(parts))
	for _, p := range parts {
		head.Format, head.RaiseLevel = max(head.GetFormat(), p.Format), max(head.GetRaiseLevel(), p.Level)
		head.Checkpoint = head.GetCheckpoint() || p.Checkpoint
		pieces = append(pieces, p.Data)
	}
	var err error
	if pieces[0], err = marshalEntry([]byte{entryMark}, head); err != nil {
		return nil, err
	}
	// Concatenated encodings of a repeated field encode the concatenated list.
	data := slices.Concat(append(pieces, appendRuns(nil, parts))...)
	if len(data) > MaxEntryBytes {
		return nil, fmt.Errorf("the log entry would have %d bytes; at most %d are allowed", len(data), MaxEntryBytes)
	}
	return data, nil
}

// EncodeEntry combines EncodeCommands, without a caller, and JoinEntry.
func EncodeEntry(s quota.Stamp, commands []quota.Command) ([]byte, error) {
	part, err := EncodeCommands(nil, commands)
	if err != nil {
		return nil, err
	}
	return JoinEntry(s, part)
}

func marshalEntry(to []byte, entry *logv1.Entry) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(to, entry)
	if err != nil {
		return nil, fmt.Errorf("encode log entry: %w", err)
	}
	return data, nil
}

func encodeCommand(c quota.Command) *logv1.Command {
	switch c := c.(type) {
	case quota.Allocate:
		return &logv1.Command{Command: &logv1.Command_Allocate{Allocate: encodeAllocate(c)}}
	case quota.Release:
		return &logv1.Command{Command: &logv1.Command_Release{Release: &logv1.Release{
			Id: c.ID, Items: each(c.Items, encodeItemName), ItemState: c.ItemState, Fence: c.Fence,
		}}}
	case quota.Renew:
		return &logv1.Command{Command: &logv1.Command_Renew{Renew: &logv1.Renew{
			Id: c.ID, Fence: c.Fence, TtlMs: int64(c.TTL), Data: each(c.Data, encodeLabel),
			Items: each(c.Items, encodeItemUpdate),
		}}}
	case quota.Resize:
		return &logv1.Command{Command: &logv1.Command_Resize{Resize: &logv1.Resize{
			Id: c.ID, Fence: c.Fence, Generation: c.Generation, Claims: each(c.Claims, encodeClaimChange),
			WaitMs: int64(c.WaitFor),
		}}}
	case quota.Transfer:
		return &logv1.Command{Command: &logv1.Command_Transfer{Transfer: &logv1.Transfer{
			Id: c.ID, Fence: c.Fence, Generation: c.Generation, Moves: each(c.Moves, encodeClaimMove),
		}}}
	case quota.Split:
		return &logv1.Command{Command: &logv1.Command_Split{Split: &logv1.Split{
			Id: c.ID, Fence: c.Fence, Generation: c.Generation, Parts: each(c.Parts, encodePart),
		}}}
	case quota.UpdateItems:
		return &logv1.Command{Command: &logv1.Command_UpdateItems{UpdateItems: &logv1.UpdateItems{
			Updates: each(c.Updates, encodeItemUpdate),
		}}}
	case quota.ResetItems:
		return &logv1.Command{Command: &logv1.Command_ResetItems{ResetItems: &logv1.ResetItems{
			Tree: c.Tree, Resource: c.Resource, State: c.State, IdleMs: int64(c.Idle), To: c.To,
		}}}
	case quota.Confirm:
		return &logv1.Command{Command: &logv1.Command_Confirm{Confirm: &logv1.Confirm{Id: c.ID, Fence: c.Fence}}}
	case quota.Cancel:
		return &logv1.Command{Command: &logv1.Command_Cancel{Cancel: &logv1.Cancel{Id: c.ID, Fence: c.Fence}}}
	case quota.Expire:
		return &logv1.Command{Command: &logv1.Command_Expire{Expire: &logv1.Expire{Most: int64(c.Most)}}}
	case quota.SetCivilOffset, quota.ScheduleLimits, quota.CancelScheduledLimit, quota.ExtendSchedule:
		return encodeCalendarCommand(c)
	}
	return encodeChange(c)
}

func encodeChange(c quota.Command) *logv1.Command {
	switch c := c.(type) {
	case quota.ApplyTrees:
		return &logv1.Command{Command: &logv1.Command_ApplyTrees{ApplyTrees: &logv1.ApplyTrees{
			Meta: encodeMeta(c.Meta), Trees: each(c.Trees, encodeTree), Prune: c.Prune,
			Policies: each(c.Policies, encodePolicy), RemovePolicies: c.RemovePolicies,
			Access: encodeOptionalSection(c.Access), At: encodeSubtree(c.At), KeepAccess: c.KeepAccess,
		}}}
	case quota.SetLimits:
		return &logv1.Command{Command: &logv1.Command_SetLimits{SetLimits: &logv1.SetLimits{
			Meta: encodeMeta(c.Meta), Tree: c.Tree, Node: c.Node, Limits: each(c.Limits, encodeLimit),
		}}}
	case quota.MoveNode:
		return &logv1.Command{Command: &logv1.Command_MoveNode{MoveNode: &logv1.MoveNode{
			Meta: encodeMeta(c.Meta), Tree: c.Tree, From: c.From, To: c.To,
		}}}
	case quota.CordonNode:
		return &logv1.Command{Command: &logv1.Command_CordonNode{CordonNode: &logv1.CordonNode{
			Meta: encodeMeta(c.Meta), Tree: c.Tree, Node: c.Node, Deny: c.Deny, ForMs: int64(c.For), Drain: c.Drain,
			GraceMs: int64(c.Grace),
		}}}
	case quota.UncordonNode:
		return &logv1.Command{Command: &logv1.Command_UncordonNode{UncordonNode: &logv1.UncordonNode{
			Meta: encodeMeta(c.Meta), Tree: c.Tree, Node: c.Node,
		}}}
	case quota.RollBack:
		return &logv1.Command{
			Command: &logv1.Command_RollBack{RollBack: &logv1.RollBack{Meta: encodeMeta(c.Meta), Revision: c.Revision}},
		}
	case quota.DeleteTree:
		return &logv1.Command{Command: &logv1.Command_DeleteTree{DeleteTree: &logv1.DeleteTree{
			Meta: encodeMeta(c.Meta), Tree: c.Tree,
		}}}
	case quota.ChangeAccess:
		return &logv1.Command{Command: &logv1.Command_ChangeAccess{ChangeAccess: encodeChangeAccess(c)}}
	case quota.RequestLimits, quota.ApproveRequest, quota.RejectRequest, quota.WithdrawRequest:
		return encodeRequestCommand(c)
	case quota.SetWebhook, quota.ManageWebhook, quota.AdvanceWebhooks:
		return encodeWebhookCommand(c)
	}
	panic("fsm: a command outside the closed list")
}

// each converts a list. An empty list becomes nil, so that decoding an encoded value returns the same value.
func each[From, To any](list []From, convert func(From) To) []To {
	if len(list) == 0 {
		return nil
	}
	converted := make([]To, len(list))
	for i, item := range list {
		converted[i] = convert(item)
	}
	return converted
}

func encodeAllocate(c quota.Allocate) *logv1.Allocate {
	return &logv1.Allocate{
		Id: c.ID, Claims: each(c.Claims, encodeClaim), Labels: each(c.Labels, encodeLabel),
		Principal: encodePrincipal(c.Principal),
		Mode:      uint32(c.Mode), ReserveMs: int64(c.ReserveFor),
		TtlMs: int64(c.TTL), WaitMs: int64(c.WaitFor), KeepMs: int64(c.Keep), Priority: c.Priority,
		Data: each(c.Data, encodeLabel), AnyOf: each(c.AnyOf, encodeClaimList), ForMs: int64(c.For),
	}
}

func encodeClaimList(claims []quota.Claim) *logv1.ClaimList {
	return &logv1.ClaimList{Claims: each(claims, encodeClaim)}
}

func encodePrincipal(p quota.Principal) *logv1.Principal {
	if isNobody(p) {
		return nil
	}
	return &logv1.Principal{User: p.User, Groups: p.Groups, Application: p.Application}
}

func isNobody(p quota.Principal) bool {
	return p.User == "" && p.Application == "" && len(p.Groups) == 0
}

func encodeClaim(c quota.Claim) *logv1.Claim {
	return &logv1.Claim{
		Tree: c.Tree, Node: c.Node, Amounts: each(c.Amounts, encodeAmount),
		Priority: c.Priority, Type: c.Type, Unpreemptable: c.Unpreemptable, Picks: each(c.Picks, encodePick),
		Ranges: each(c.Ranges, encodeRange),
	}
}

func encodeRange(r quota.AmountRange) *logv1.AmountRange {
	return &logv1.AmountRange{Resource: r.Resource, Most: int64(r.Most), Step: int64(r.Step)}
}

func encodeAmount(c quota.Component) *logv1.Amount {
	return &logv1.Amount{Resource: c.Resource, Amount: int64(c.Amount)}
}

func encodeLabel(l quota.Label) *logv1.Label { return &logv1.Label{Key: l.Key, Value: l.Value} }

func encodeMeta(m quota.ChangeMeta) *logv1.ChangeMeta {
	return &logv1.ChangeMeta{
		Actor: m.Actor, Reason: m.Reason, RequestId: m.RequestID, Fingerprint: []byte(m.Fingerprint),
		ExpectedRevision: m.ExpectedRevision,
	}
}

func encodeTree(t quota.TreeSpec) *logv1.Tree {
	return &logv1.Tree{
		Name: t.Name, Resources: each(t.Resources, encodeResource), Nodes: each(t.Nodes, encodeNode),
		Forest: t.Forest, RequireReason: t.RequireReason, Moves: each(t.Moves, encodeMove),
		Leases: encodeLeases(t.Leases), OvertakeMs: int64(t.Overtake), TenantsSee: uint32(t.TenantsSee),
		RequirePrincipal: t.RequirePrincipal,
		Approvals:        int64(t.Approvals),
	}
}

func encodeSubtree(s *quota.Subtree) *logv1.Subtree {
	if s == nil {
		return nil
	}
	return &logv1.Subtree{Tree: s.Tree, Node: s.Node}
}

func encodePolicy(p quota.PolicySpec) *logv1.Policy {
	return &logv1.Policy{
		Name: p.Name, Base: p.Base, Unset: p.Unset, Sum: p.Sum, ChildLimit: p.ChildLimit, UnknownNodes: p.UnknownNodes,
		ClaimNodes: p.ClaimNodes, Borrowing: p.Borrowing, Preemption: p.Preemption,
	}
}

func encodeLeases(s quota.LeaseSettings) *logv1.Leases {
	if s == (quota.LeaseSettings{}) {
		return nil
	}
	return &logv1.Leases{DefaultMs: int64(s.Default), MaxMs: int64(s.Max), GraceMs: int64(s.Grace)}
}

func encodeMove(m quota.Move) *logv1.Move { return &logv1.Move{From: m.From, To: m.To} }

func encodeResource(r quota.Resource) *logv1.Resource {
	return &logv1.Resource{Name: r.Name, Unit: uint32(r.Unit), Items: encodeItemSpec(r.Items)}
}

func encodeNode(n quota.NodeSpec) *logv1.Node {
	return &logv1.Node{
		Path: n.Path, Policy: n.Policy, Limits: each(n.Limits, encodeLimit), Labels: each(n.Labels, encodeLabel),
		Hard: n.Hard, Principals: each(n.Principals, encodePrincipalLimit), Defaults: each(n.Defaults, encodeLimit),
		Borrow: each(n.Borrow, encodeLimit), Lend: each(n.Lend, encodeLimit),
		Applications: encodeApplications(n.Applications), Queueing: uint32(n.Queueing),
		Bindings: each(n.Bindings, encodeBinding), AutoApprove: encodeAutoApprove(n.AutoApprove),
		Thresholds: encodeThresholds(n.Thresholds),
	}
}

func encodeAutoApprove(a quota.AutoApprove) *logv1.AutoApprove {
	if a == (quota.AutoApprove{}) {
		return nil
	}
	return &logv1.AutoApprove{
		AtMostPercent: int64(a.AtMost), EveryMs: int64(a.Every), WithinHeadroom: a.WithinHeadroom,
	}
}

func encodePrincipalLimit(p quota.PrincipalLimit) *logv1.PrincipalLimit {
	return &logv1.PrincipalLimit{
		Users: p.Users, Groups: p.Groups, Limits: each(p.Limits, encodeAmount),
		Applications: encodeApplications(p.Applications), Description: p.Description,
	}
}

// encodeLimit writes the numbers of entry.proto. An invalid kind becomes 0, which decodes to an invalid kind again, so
// that the ledger refuses it.
func encodeLimit(l quota.ResourceLimit) *logv1.Limit {
	kind := uint32(0)
	switch l.Limit.Kind {
	case quota.Limited:
		kind = 1
	case quota.Unlimited:
		kind = 2
	case quota.Unset:
		kind = 3
	case quota.Advisory:
		kind = 4
	}
	return &logv1.Limit{Resource: l.Resource, Kind: kind, Amount: int64(l.Limit.Amount)}
}

// encodeApplications is nil for no limit.
func encodeApplications(most quota.Limit) *int64 {
	if !most.HasAmount() {
		return nil
	}
	return new(int64(most.Amount))
}
