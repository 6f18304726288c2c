package fsm

import (
	"errors"
	"math"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// Requests for limits in commands and in snapshots, both ways.

func encodeRequestCommand(c quota.Command) *logv1.Command {
	switch c := c.(type) {
	case quota.RequestLimits:
		return &logv1.Command{Command: &logv1.Command_RequestLimits{RequestLimits: &logv1.RequestLimits{
			Tree: c.Tree, Node: c.Node, Limits: each(c.Limits, encodeLimit), Reason: c.Reason, OpenMs: int64(c.Open),
		}}}
	case quota.ApproveRequest:
		return &logv1.Command{Command: &logv1.Command_ApproveRequest{ApproveRequest: &logv1.ApproveRequest{
			Number: c.Number, Digest: c.Digest,
		}}}
	case quota.RejectRequest:
		return &logv1.Command{Command: &logv1.Command_RejectRequest{RejectRequest: &logv1.RejectRequest{
			Number: c.Number, Reason: c.Reason,
		}}}
	case quota.WithdrawRequest:
		return &logv1.Command{Command: &logv1.Command_WithdrawRequest{WithdrawRequest: &logv1.WithdrawRequest{
			Number: c.Number,
		}}}
	}
	panic("fsm: a command outside the closed list")
}

func decodeRequestCommand(c *logv1.Command) (quota.Command, error) {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_RequestLimits:
		r := c.RequestLimits
		return quota.RequestLimits{
			Tree: r.GetTree(), Node: r.GetNode(), Limits: each(r.GetLimits(), decodeLimit), Reason: r.GetReason(),
			Open: quota.Span(r.GetOpenMs()),
		}, nil
	case *logv1.Command_ApproveRequest:
		return quota.ApproveRequest{Number: c.ApproveRequest.GetNumber(), Digest: c.ApproveRequest.GetDigest()}, nil
	case *logv1.Command_RejectRequest:
		return quota.RejectRequest{Number: c.RejectRequest.GetNumber(), Reason: c.RejectRequest.GetReason()}, nil
	case *logv1.Command_WithdrawRequest:
		return quota.WithdrawRequest{Number: c.WithdrawRequest.GetNumber()}, nil
	}
	if command := decodeWebhookCommand(c); command != nil {
		return command, nil
	}
	return nil, errors.New("this version does not know it; run a newer version")
}

// decodeCount maps every number that does not fit in an int on all machines to an invalid one, which the ledger
// refuses.
func decodeCount(number int64) int { return int(min(max(number, math.MinInt32), math.MaxInt32)) }

func encodeApproved(r *quota.ApprovedRequest) *logv1.ApprovedRequest {
	if r == nil {
		return nil
	}
	return &logv1.ApprovedRequest{Number: r.Number, Asker: r.Asker, Approvers: r.Approvers}
}

func decodeApproved(r *logv1.ApprovedRequest) *quota.ApprovedRequest {
	if r == nil {
		return nil
	}
	return &quota.ApprovedRequest{Number: r.GetNumber(), Asker: r.GetAsker(), Approvers: r.GetApprovers()}
}

func encodeLimitRequest(r *quota.LimitRequest) *logv1.LimitRequestRecord {
	return &logv1.LimitRequestRecord{
		Number: r.Number, Tree: r.Tree, Node: r.Node, NodeId: r.NodeID, Limits: each(r.Limits, encodeLimit),
		Asker: r.Asker, Reason: r.Reason, MadeMs: int64(r.Made.At), MadeWallMs: r.Made.Wall, EndsMs: int64(r.Ends),
		Approvals: each(r.Approvals, func(a quota.Approval) *logv1.ApprovalRecord {
			return &logv1.ApprovalRecord{User: a.User, Digest: a.Digest, GivenWallMs: a.Wall}
		}),
		State: uint32(r.State), ClosedMs: int64(r.Closed.At), ClosedWallMs: r.Closed.Wall, ClosedBy: r.ClosedBy,
		ClosedReason: r.ClosedReason, ClosedSeq: r.ClosedSeq, Revision: r.Revision,
	}
}

func decodeLimitRequest(r *logv1.LimitRequestRecord) *quota.LimitRequest {
	return &quota.LimitRequest{
		Number: r.GetNumber(), Tree: r.GetTree(), Node: r.GetNode(), NodeID: r.GetNodeId(),
		Limits: each(r.GetLimits(), decodeLimit), Asker: r.GetAsker(), Reason: r.GetReason(),
		Made: quota.Stamp{At: quota.Instant(r.GetMadeMs()), Wall: r.GetMadeWallMs()}, Ends: quota.Instant(r.GetEndsMs()),
		Approvals: each(r.GetApprovals(), func(a *logv1.ApprovalRecord) quota.Approval {
			return quota.Approval{User: a.GetUser(), Digest: a.GetDigest(), Wall: a.GetGivenWallMs()}
		}),
		State:    quota.RequestState(min(r.GetState(), math.MaxUint8)),
		Closed:   quota.Stamp{At: quota.Instant(r.GetClosedMs()), Wall: r.GetClosedWallMs()},
		ClosedBy: r.GetClosedBy(), ClosedReason: r.GetClosedReason(), ClosedSeq: r.GetClosedSeq(),
		Revision: r.GetRevision(),
	}
}
