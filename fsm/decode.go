package fsm

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

type decoded struct {
	format   uint32
	stamp    quota.Stamp
	commands []quota.Command
	// callers divide the commands; nil if none of them has a caller.
	callers []callerRun
	// level is the new feature level; 0 keeps the present one.
	level      uint32
	checkpoint bool
	// replacement is a step of a replacement; then there are no commands.
	replacement *logv1.Replacement
}

// decodeEntry decodes the data of a log entry. After any error the node must halt.
func (f *Formats) decodeEntry(data []byte) (decoded, error) {
	body, err := entryBody(data)
	if err != nil {
		return decoded{}, err
	}
	var entry logv1.Entry
	exact, err := unmarshal(body, &entry)
	switch {
	case err != nil:
		return decoded{}, fmt.Errorf("it cannot be decoded: %w", err)
	case entry.GetFormat() < quota.FirstFormat || entry.GetFormat() > f.Newest():
		return decoded{}, fmt.Errorf("it has format %d, but this version understands 1 to %d; run a newer version",
			entry.GetFormat(), f.Newest())
	case !exact:
		return decoded{}, errUnknownFields
	case entry.GetRaiseLevel() > f.Newest():
		return decoded{}, fmt.Errorf(
			"it raises the feature level of the cluster to %d, but this version understands 1 to %d; run "+
				"a newer version",
			entry.GetRaiseLevel(), f.Newest())
	case entry.GetReplacement() != nil:
		return decodeReplacement(&entry)
	case len(entry.GetCommands()) == 0 && entry.GetRaiseLevel() == 0 && !entry.GetCheckpoint():
		return decoded{}, errors.New("it carries no command")
	}
	commands := make([]quota.Command, len(entry.GetCommands()))
	for i, c := range entry.GetCommands() {
		command, err := decodeCommand(c)
		if err != nil {
			return decoded{}, fmt.Errorf("command %d: %w", i, err)
		}
		commands[i] = command
	}
	callers, err := decodeCallers(&entry)
	if err != nil {
		return decoded{}, err
	}
	return decoded{
		format: entry.GetFormat(), stamp: stampOf(&entry),
		commands: commands, callers: callers, level: entry.GetRaiseLevel(), checkpoint: entry.GetCheckpoint(),
	}, nil
}

func stampOf(entry *logv1.Entry) quota.Stamp {
	return quota.Stamp{At: quota.Instant(entry.GetTimeMs()), Wall: entry.GetWallMs()}
}

// errUnknownFields: a node that ignored unknown fields might apply something else than the others.
var errUnknownFields = errors.New("it has fields that this version does not know; run a newer version")

// unmarshal decodes a message and reports whether it knows all fields of the data. Unknown fields are discarded and
// then missing from the re-encoded size; comparing sizes costs far less than searching every nested message.
func unmarshal(data []byte, m proto.Message) (exact bool, err error) {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return false, err
	}
	return proto.Size(m) == len(data), nil
}

func decodeCommand(c *logv1.Command) (quota.Command, error) {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_Allocate:
		return decodeAllocate(c.Allocate), nil
	case *logv1.Command_Release:
		return quota.Release{
			ID: c.Release.GetId(), Items: each(c.Release.GetItems(), decodeItemName),
			ItemState: c.Release.GetItemState(), Fence: c.Release.GetFence(),
		}, nil
	case *logv1.Command_Renew:
		return decodeRenew(c.Renew), nil
	case *logv1.Command_UpdateItems:
		return quota.UpdateItems{Updates: each(c.UpdateItems.GetUpdates(), decodeItemUpdate)}, nil
	case *logv1.Command_ResetItems:
		r := c.ResetItems
		return quota.ResetItems{
			Tree: r.GetTree(), Resource: r.GetResource(), State: r.GetState(),
			Idle: quota.Span(r.GetIdleMs()), To: r.GetTo(),
		}, nil
	case *logv1.Command_Confirm:
		return quota.Confirm{ID: c.Confirm.GetId(), Fence: c.Confirm.GetFence()}, nil
	case *logv1.Command_Cancel:
		return quota.Cancel{ID: c.Cancel.GetId(), Fence: c.Cancel.GetFence()}, nil
	case *logv1.Command_Expire:
		return quota.Expire{Most: int(c.Expire.GetMost())}, nil
	}
	return decodeChange(c)
}

func decodeChange(c *logv1.Command) (quota.Command, error) {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_ApplyTrees:
		a := c.ApplyTrees
		return quota.ApplyTrees{
			Meta: decodeMeta(a.GetMeta()), Trees: each(a.GetTrees(), decodeTree),
			Prune: a.GetPrune(), Policies: each(a.GetPolicies(), decodePolicy), RemovePolicies: a.GetRemovePolicies(),
			Access: decodeOptionalSection(a.GetAccess()), At: decodeSubtree(a.GetAt()),
			KeepAccess: a.GetKeepAccess(),
		}, nil
	case *logv1.Command_SetLimits:
		s := c.SetLimits
		return quota.SetLimits{
			Meta: decodeMeta(s.GetMeta()), Tree: s.GetTree(), Node: s.GetNode(),
			Limits: each(s.GetLimits(), decodeLimit),
		}, nil
	case *logv1.Command_MoveNode:
		m := c.MoveNode
		return quota.MoveNode{Meta: decodeMeta(m.GetMeta()), Tree: m.GetTree(), From: m.GetFrom(), To: m.GetTo()}, nil
	case *logv1.Command_CordonNode:
		h := c.CordonNode
		return quota.CordonNode{
			Meta: decodeMeta(h.GetMeta()), Tree: h.GetTree(), Node: h.GetNode(), Deny: h.GetDeny(),
			For: quota.Span(h.GetForMs()), Drain: h.GetDrain(), Grace: quota.Span(h.GetGraceMs()),
		}, nil
	case *logv1.Command_UncordonNode:
		r := c.UncordonNode
		return quota.UncordonNode{Meta: decodeMeta(r.GetMeta()), Tree: r.GetTree(), Node: r.GetNode()}, nil
	case *logv1.Command_RollBack:
		return quota.RollBack{Meta: decodeMeta(c.RollBack.GetMeta()), Revision: c.RollBack.GetRevision()}, nil
	case *logv1.Command_DeleteTree:
		return quota.DeleteTree{Meta: decodeMeta(c.DeleteTree.GetMeta()), Tree: c.DeleteTree.GetTree()}, nil
	case *logv1.Command_ChangeAccess:
		return decodeChangeAccess(c.ChangeAccess)
	}
	if command := decodeHoldingChange(c); command != nil {
		return command, nil
	}
	if command := decodeCalendarCommand(c); command != nil {
		return command, nil
	}
	return decodeRequestCommand(c)
}

func decodeAllocate(c *logv1.Allocate) quota.Allocate {
	return quota.Allocate{
		ID: c.GetId(), Claims: each(c.GetClaims(), decodeClaim), Labels: each(c.GetLabels(), decodeLabel),
		Principal: decodePrincipal(c.GetPrincipal()), Mode: quota.Mode(min(c.GetMode(), 255)),
		ReserveFor: quota.Span(c.GetReserveMs()),
		TTL:        quota.Span(c.GetTtlMs()), WaitFor: quota.Span(c.GetWaitMs()), Keep: quota.Span(c.GetKeepMs()),
		Priority: c.GetPriority(), Data: each(c.GetData(), decodeLabel), AnyOf: each(c.GetAnyOf(), decodeClaimList),
		For: quota.Span(c.GetForMs()),
	}
}

func decodeClaimList(list *logv1.ClaimList) []quota.Claim { return each(list.GetClaims(), decodeClaim) }

func decodeRenew(c *logv1.Renew) quota.Renew {
	return quota.Renew{
		ID: c.GetId(), Fence: c.GetFence(), TTL: quota.Span(c.GetTtlMs()),
		Data: each(c.GetData(), decodeLabel), Items: each(c.GetItems(), decodeItemUpdate),
	}
}

func decodePrincipal(p *logv1.Principal) quota.Principal {
	return quota.Principal{User: p.GetUser(), Groups: p.GetGroups(), Application: p.GetApplication()}
}

func decodeClaim(c *logv1.Claim) quota.Claim {
	return quota.Claim{
		Tree: c.GetTree(), Node: c.GetNode(), Amounts: each(c.GetAmounts(), decodeAmount),
		Picks: each(c.GetPicks(), decodePick), Ranges: each(c.GetRanges(), decodeRange),
		Standing: quota.Standing{Priority: c.GetPriority(), Type: c.GetType(), Unpreemptable: c.GetUnpreemptable()},
	}
}

func decodeRange(r *logv1.AmountRange) quota.AmountRange {
	return quota.AmountRange{Resource: r.GetResource(), Most: quota.Amount(r.GetMost()), Step: quota.Amount(r.GetStep())}
}

func decodeAmount(a *logv1.Amount) quota.Component {
	return quota.Component{Resource: a.GetResource(), Amount: quota.Amount(a.GetAmount())}
}

func decodeLabel(l *logv1.Label) quota.Label {
	return quota.Label{Key: l.GetKey(), Value: l.GetValue()}
}

func decodeMeta(m *logv1.ChangeMeta) quota.ChangeMeta {
	meta := quota.ChangeMeta{
		Actor: m.GetActor(), Reason: m.GetReason(), RequestID: m.GetRequestId(),
		Fingerprint: string(m.GetFingerprint()),
	}
	if m != nil {
		meta.ExpectedRevision = m.ExpectedRevision
	}
	return meta
}

func decodeTree(t *logv1.Tree) quota.TreeSpec {
	return quota.TreeSpec{
		Name: t.GetName(), Resources: each(t.GetResources(), decodeResource), Nodes: each(t.GetNodes(), decodeNode),
		TreeSettings: quota.TreeSettings{
			Forest: t.GetForest(), RequireReason: t.GetRequireReason(),
			Leases: decodeLeases(t.GetLeases()), Overtake: quota.Span(t.GetOvertakeMs()),
			TenantsSee: decodeTenantsSee(t.GetTenantsSee()), RequirePrincipal: t.GetRequirePrincipal(),
			Approvals: decodeCount(t.GetApprovals()),
		},
		Moves: each(t.GetMoves(), decodeMove),
	}
}

func decodeTenantsSee(n uint32) quota.TenantsSee { return quota.TenantsSee(min(n, math.MaxUint8)) }

func decodeSubtree(s *logv1.Subtree) *quota.Subtree {
	if s == nil {
		return nil
	}
	return &quota.Subtree{Tree: s.GetTree(), Node: s.GetNode()}
}

func decodePolicy(p *logv1.Policy) quota.PolicySpec {
	return quota.PolicySpec{
		Name: p.GetName(), Base: p.GetBase(), Unset: p.GetUnset(), Sum: p.GetSum(), ChildLimit: p.GetChildLimit(),
		UnknownNodes: p.GetUnknownNodes(), ClaimNodes: p.GetClaimNodes(), Borrowing: p.GetBorrowing(),
		Preemption: p.GetPreemption(),
	}
}

func decodeLeases(l *logv1.Leases) quota.LeaseSettings {
	return quota.LeaseSettings{
		Default: quota.Span(l.GetDefaultMs()), Max: quota.Span(l.GetMaxMs()), Grace: quota.Span(l.GetGraceMs()),
	}
}

func decodeMove(m *logv1.Move) quota.Move { return quota.Move{From: m.GetFrom(), To: m.GetTo()} }

func decodeResource(r *logv1.Resource) quota.Resource {
	return quota.Resource{
		Name: r.GetName(), Unit: quota.Unit(min(r.GetUnit(), 255)),
		Items: decodeItemSpec(r.GetItems()),
	}
}

func decodeNode(n *logv1.Node) quota.NodeSpec {
	return quota.NodeSpec{
		Path: n.GetPath(), Policy: n.GetPolicy(), Limits: each(n.GetLimits(), decodeLimit),
		Labels: each(n.GetLabels(), decodeLabel),
		Hard:   n.GetHard(), Principals: each(n.GetPrincipals(), decodePrincipalLimit),
		Defaults: each(n.GetDefaults(), decodeLimit),
		Borrow:   each(n.GetBorrow(), decodeLimit), Lend: each(n.GetLend(), decodeLimit),
		Applications: decodeApplications(n.Applications),
		Queueing:     decodeQueueing(n.GetQueueing()), Bindings: each(n.GetBindings(), decodeBinding),
		AutoApprove: decodeAutoApprove(n.GetAutoApprove()), Thresholds: decodeThresholds(n.GetThresholds()),
	}
}

// decodeAutoApprove is the zero value for no rule.
func decodeAutoApprove(a *logv1.AutoApprove) quota.AutoApprove {
	return quota.AutoApprove{
		AtMost: decodeCount(a.GetAtMostPercent()), Every: quota.Span(a.GetEveryMs()), WithinHeadroom: a.GetWithinHeadroom(),
	}
}

func decodePrincipalLimit(p *logv1.PrincipalLimit) quota.PrincipalLimit {
	return quota.PrincipalLimit{
		Users: p.GetUsers(), Groups: p.GetGroups(), Limits: each(p.GetLimits(), decodeAmount),
		Applications: decodeApplications(p.Applications), Description: p.GetDescription(),
	}
}

// decodeLimit reads the numbers of entry.proto. An unknown number becomes an invalid kind, which the ledger refuses.
func decodeLimit(l *logv1.Limit) quota.ResourceLimit {
	kind := quota.LimitKind(255)
	switch l.GetKind() {
	case 1:
		kind = quota.Limited
	case 2:
		kind = quota.Unlimited
	case 3:
		kind = quota.Unset
	case 4:
		kind = quota.Advisory
	}
	return quota.ResourceLimit{
		Resource: l.GetResource(),
		Limit:    quota.Limit{Kind: kind, Amount: quota.Amount(l.GetAmount())},
	}
}

func decodeApplications(most *int64) quota.Limit {
	if most == nil {
		return quota.Limit{}
	}
	return quota.AtMost(quota.Amount(*most))
}
