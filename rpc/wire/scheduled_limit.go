package wire

import (
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/quota"
)

// ToScheduleLimits converts a request to schedule limits. now is civil time, from which on a rule gets its windows, and
// zones are the time zones that it may name.
func ToScheduleLimits(
	r *quoratev1.ScheduleLimitsRequest, now quota.CivilTime, zones *recurrence.Zones,
) (quota.ScheduleLimits, error) {
	c := quota.ScheduleLimits{
		ID: r.GetId(), Tree: r.GetTree(), Node: r.GetNode(), Actor: r.GetActor(),
		Reason: r.GetReason(),
	}
	if err := setWindows(&c, r, now, zones); err != nil {
		return quota.ScheduleLimits{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.GetAdjustments())) {
		a := quota.LimitAdjustment{Resource: name}
		switch value := r.GetAdjustments()[name].GetValue().(type) {
		case *quoratev1.LimitAdjustment_Set:
			a.Kind, a.Amount = quota.SetLimit, quota.Amount(value.Set)
		case *quoratev1.LimitAdjustment_Add:
			a.Kind, a.Amount = quota.AddToLimit, quota.Amount(value.Add)
		case *quoratev1.LimitAdjustment_Cap:
			a.Kind, a.Amount = quota.CapLimit, quota.Amount(value.Cap)
		default:
			return quota.ScheduleLimits{}, InvalidField("adjustments["+strconv.Quote(name)+"]",
				"a scheduled limit has one of set, add and cap")
		}
		c.Adjustments = append(c.Adjustments, a)
	}
	return c, nil
}

// setWindows shows the window of the request, or the next ones of its rule.
func setWindows(
	c *quota.ScheduleLimits, r *quoratev1.ScheduleLimitsRequest, now quota.CivilTime, zones *recurrence.Zones,
) error {
	from, until := toCivil(r.GetBeginsAt()), toCivil(r.GetEndsAt())
	switch {
	case r.GetEvery() != "":
	case r.GetEndsAt() == nil:
		return InvalidField("ends_at", "say when the limits end, or with every when they recur")
	default:
		c.Windows = []quota.CivilWindow{{From: from, Until: until}}
		return nil
	}
	rule, err := zones.Parse(r.GetEvery())
	if err != nil {
		return InvalidField("every", "%v", err)
	}
	c.Rule, c.RuleBegins, c.RuleEnds = rule.String(), from, until
	if c.Windows = rule.Windows(max(from, now), until, quota.MaxWindows); len(c.Windows) == 0 {
		return InvalidField("ends_at", "no window of %q is left before %s", c.Rule, until)
	}
	return nil
}

// toCivil is 0 for no time.
func toCivil(t *timestamppb.Timestamp) quota.CivilTime {
	if t == nil {
		return 0
	}
	return quota.CivilTime(t.AsTime().UnixMilli())
}

// FromCivil is nil for no time.
func FromCivil(t quota.CivilTime) *timestamppb.Timestamp {
	if t == 0 {
		return nil
	}
	return FromWall(int64(t))
}

// FromScheduledLimit shows a scheduled limit; nil for none.
func FromScheduledLimit(s *quota.ScheduledLimit) *quoratev1.ScheduledLimit {
	if s == nil {
		return nil
	}
	shown := &quoratev1.ScheduledLimit{
		Id: s.ID, Tree: s.Tree, Node: s.Node, Adjustments: map[string]*quoratev1.LimitAdjustment{}, Actor: s.Actor,
		Reason: s.Reason, InForce: s.InForce,
	}
	if len(s.Windows) > 0 {
		shown.BeginsAt, shown.EndsAt = FromCivil(s.Windows[0].From), FromCivil(s.Windows[0].Until)
	}
	if s.Rule != "" {
		setRule(shown, s)
	}
	for _, a := range s.Adjustments {
		adjustment := &quoratev1.LimitAdjustment{Value: &quoratev1.LimitAdjustment_Set{Set: int64(a.Amount)}}
		switch a.Kind {
		case quota.AddToLimit:
			adjustment.Value = &quoratev1.LimitAdjustment_Add{Add: int64(a.Amount)}
		case quota.CapLimit:
			adjustment.Value = &quoratev1.LimitAdjustment_Cap{Cap: int64(a.Amount)}
		case quota.SetLimit:
		}
		shown.Adjustments[a.Resource] = adjustment
	}
	return shown
}

func setRule(shown *quoratev1.ScheduledLimit, s *quota.ScheduledLimit) {
	shown.Every, shown.RuleBeginsAt, shown.RuleEndsAt = s.Rule, FromCivil(s.RuleBegins), FromCivil(s.RuleEnds)
	for _, w := range s.Windows {
		shown.Windows = append(shown.Windows, &quoratev1.CivilWindow{BeginsAt: FromCivil(w.From), EndsAt: FromCivil(w.Until)})
	}
	for _, w := range s.Skipped {
		shown.Skipped = append(shown.Skipped, &quoratev1.SkippedWindow{
			BeginsAt: FromCivil(w.From), EndsAt: FromCivil(w.Until), Reason: w.Reason,
		})
	}
}

func fromScheduledEvent(e *quota.ScheduledLimitEvent) *quoratev1.ScheduledLimitEvent {
	if e == nil {
		return nil
	}
	return &quoratev1.ScheduledLimitEvent{Limit: FromScheduledLimit(&e.Limit), Overuses: fromOver(e.Over)}
}
