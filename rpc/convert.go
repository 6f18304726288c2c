package rpc

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// Wire maps become sorted lists, so that equal requests make equal commands.

func toAllocate(r *quoratev1.AllocateRequest) quota.Allocate {
	command := quota.Allocate{ID: r.GetId(), Claims: make([]quota.Claim, len(r.GetClaims())), Labels: toLabels(r.GetLabels())}
	for i, c := range r.GetClaims() {
		command.Claims[i] = quota.Claim{Tree: c.GetTree(), Node: c.GetNode(), Amounts: toVector(c.GetAmounts())}
	}
	return command
}

func toVector(amounts map[string]int64) quota.Vector {
	vector := make(quota.Vector, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		vector = append(vector, quota.Component{Resource: name, Amount: quota.Amount(amounts[name])})
	}
	return vector
}

func fromVector(vector quota.Vector) map[string]int64 {
	amounts := make(map[string]int64, len(vector))
	for _, c := range vector {
		amounts[c.Resource] = int64(c.Amount)
	}
	return amounts
}

func toLabels(labels map[string]string) []quota.Label {
	if len(labels) == 0 {
		return nil
	}
	list := make([]quota.Label, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, quota.Label{Key: key, Value: labels[key]})
	}
	return list
}

func fromLabels(labels []quota.Label) map[string]string {
	wire := make(map[string]string, len(labels))
	for _, l := range labels {
		wire[l.Key] = l.Value
	}
	return wire
}

// toLimits reads limits by resource. Unset is a value only where a limit can be taken back.
func toLimits(limits map[string]*quoratev1.Limit, field string, mayUnset bool) ([]quota.ResourceLimit, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	list := make([]quota.ResourceLimit, 0, len(limits))
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit, err := toLimit(limits[name], field+"["+strconv.Quote(name)+"]", mayUnset)
		if err != nil {
			return nil, err
		}
		list = append(list, quota.ResourceLimit{Resource: name, Limit: limit})
	}
	return list, nil
}

func toLimit(limit *quoratev1.Limit, field string, mayUnset bool) (quota.Limit, error) {
	switch value := limit.GetValue().(type) {
	case *quoratev1.Limit_Amount:
		return quota.AtMost(quota.Amount(value.Amount)), nil
	case *quoratev1.Limit_Unlimited:
		return quota.NoLimit(), nil
	case *quoratev1.Limit_Unset:
		if mayUnset {
			return quota.Limit{}, nil
		}
		return quota.Limit{}, invalid(field, "unset is only for SetLimits; leave the resource out to have no limit of its own here")
	}
	return quota.Limit{}, invalid(field, "a limit has one of amount, unlimited and unset")
}

func fromLimit(limit quota.Limit) *quoratev1.Limit {
	switch limit.Kind {
	case quota.Limited:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: int64(limit.Amount)}}
	case quota.Unlimited:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
	case quota.Unset:
	}
	return nil
}

func fromLimits(limits []quota.ResourceLimit) map[string]*quoratev1.Limit {
	wire := make(map[string]*quoratev1.Limit, len(limits))
	for _, l := range limits {
		if limit := fromLimit(l.Limit); limit != nil {
			wire[l.Resource] = limit
		}
	}
	return wire
}

func fromDecision(d quota.Decision) *quoratev1.Decision {
	wire := &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_DENIED, NeverFits: d.NeverFits(), Explanation: d.Explain()}
	if d.Granted {
		wire.Outcome = quoratev1.Outcome_OUTCOME_GRANTED
	}
	for _, v := range d.Violations {
		wire.Violations = append(wire.Violations, &quoratev1.Violation{
			Tree: v.Tree, Node: v.Node, Resource: v.Resource,
			Limit: int64(v.Limit), Used: int64(v.Used), Requested: int64(v.Requested), Missing: int64(v.Missing()),
		})
	}
	return wire
}

func fromAllocation(a quota.AllocationInfo) *quoratev1.Allocation {
	wire := &quoratev1.Allocation{
		Id: a.ID, Labels: fromLabels(a.Labels), State: quoratev1.AllocationState_ALLOCATION_STATE_HELD,
		Fence: a.Fence, GrantedLedgerMs: int64(a.GrantedAt), GrantedAt: fromWall(a.GrantedWall),
	}
	for _, c := range a.Claims {
		wire.Claims = append(wire.Claims, &quoratev1.HeldClaim{Tree: c.Tree, Node: c.Node, Amounts: fromVector(c.Amounts), Placed: c.Placed})
	}
	if a.Ended {
		wire.State = quoratev1.AllocationState_ALLOCATION_STATE_RELEASED
		wire.EndedAt = fromWall(a.EndedWall)
	}
	return wire
}

// fromWall is a wall-clock time in milliseconds since 1970.
func fromWall(ms int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(ms)) }
