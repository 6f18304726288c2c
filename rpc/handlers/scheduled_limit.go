package handlers

import (
	"context"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// ScheduleLimits changes limits of one node for a while.
func (s TreeService) ScheduleLimits(
	ctx context.Context, r *quoratev1.ScheduleLimitsRequest,
) (*quoratev1.ScheduleLimitsResponse, error) {
	command, err := wire.ToScheduleLimits(r, s.Node.CivilTime(), s.Node.Zones())
	if err != nil {
		return nil, wire.ToError(err)
	}
	out, index, err := s.decideSchedule(ctx, command, r.GetDryRun())
	if err != nil {
		return nil, err
	}
	return &quoratev1.ScheduleLimitsResponse{
		Limit: wire.FromScheduledLimit(out.ScheduledLimit), Write: fromWrite(out, index),
	}, nil
}

// CancelScheduledLimit ends a scheduled limit.
func (s TreeService) CancelScheduledLimit(
	ctx context.Context, r *quoratev1.CancelScheduledLimitRequest,
) (*quoratev1.CancelScheduledLimitResponse, error) {
	command := quota.CancelScheduledLimit{ID: r.GetId(), Actor: r.GetActor(), Reason: r.GetReason()}
	out, index, err := s.decideSchedule(ctx, command, r.GetDryRun())
	if err != nil {
		return nil, err
	}
	return &quoratev1.CancelScheduledLimitResponse{
		Limit: wire.FromScheduledLimit(out.ScheduledLimit), Write: fromWrite(out, index),
	}, nil
}

func (s TreeService) decideSchedule(
	ctx context.Context, command quota.Command, dry bool,
) (ledger.Outcome, uint64, error) {
	propose := s.proposeOne
	if dry {
		propose = s.tryCommand
	}
	out, index, err := propose(ctx, command)
	if err != nil {
		return ledger.Outcome{}, 0, err
	}
	if refused := out.Refused; refused != nil {
		return ledger.Outcome{}, 0, wire.RefusalError(refused)
	}
	return out, index, nil
}

// ListScheduledLimits shows what is scheduled at a node and below.
func (s TreeService) ListScheduledLimits(
	ctx context.Context, r *quoratev1.ListScheduledLimitsRequest,
) (*quoratev1.ListScheduledLimitsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1.ListScheduledLimitsResponse{}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		byID := func(s quota.ScheduledLimit) string { return s.ID }
		list := v.ScheduledLimits(r.GetTree(), r.GetNode())
		slices.SortFunc(list, func(a, b quota.ScheduledLimit) int { return strings.Compare(a.ID, b.ID) })
		list, answer.NextPageToken = wire.CutPage(page, slices.Values(list), byID)
		for i := range list {
			answer.Limits = append(answer.Limits, wire.FromScheduledLimit(&list[i]))
		}
		answer.CivilAt = wire.FromCivil(v.CivilTime())
		return requirePlace(v, page, len(list), r)
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}
