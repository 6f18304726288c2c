package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// FromDecision is a decision as an answer. A grant's claims say where they are counted; a denial has none.
func FromDecision(d quota.Decision, claims []quota.ClaimInfo) *quoratev1.Decision {
	return FromDecisionParts(&d, ToPlacements(claims))
}

// ToPlacements says where claims are counted.
func ToPlacements(claims []quota.ClaimInfo) []*quoratev1.Placement {
	var wire []*quoratev1.Placement
	for _, c := range claims {
		wire = append(wire, &quoratev1.Placement{
			Tree: c.Tree, Node: c.Node, Placed: c.Placed, RangeAmounts: fromRangeAmounts(&c),
		})
	}
	return wire
}

// fromRangeAmounts is nil if the claim has no ranges.
func fromRangeAmounts(c *quota.ClaimInfo) map[string]int64 {
	var amounts map[string]int64
	for _, r := range c.Ranges {
		for _, held := range c.Amounts {
			if held.Resource == r.Resource {
				if amounts == nil {
					amounts = map[string]int64{}
				}
				amounts[r.Resource] = int64(held.Amount)
			}
		}
	}
	return amounts
}

// FromDecisionParts is FromDecision with the message of the placements.
func FromDecisionParts(d *quota.Decision, placements []*quoratev1.Placement) *quoratev1.Decision {
	wire := &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_DENIED, NeverFits: d.NeverFits(), Explanation: d.Explain(),
		Preempted: fromPreempted(d.Preempted), Remedy: fromRemedy(d.Remedy), Placements: placements,
		Holders: fromLevelHolders(d.Holders), Alternative: int32(d.Alternative),
	}
	switch {
	case d.Granted:
		wire.Outcome = quoratev1.Outcome_OUTCOME_GRANTED
	case d.Waiting:
		wire.Outcome = quoratev1.Outcome_OUTCOME_WAITING
	}
	listed := d.Violations
	if len(listed) > maxDecisionViolations {
		listed = byUse(listed, quotaUse)[:maxDecisionViolations]
		wire.OtherViolations = int32(len(d.Violations) - len(listed))
	}
	for _, v := range listed {
		wire.Violations = append(wire.Violations, &quoratev1.Violation{
			Tree: v.Tree, Node: v.Node, Resource: v.Resource,
			Limit: int64(v.Limit), Used: int64(v.Used), Requested: int64(v.Requested), Missing: int64(v.Missing()),
			Kind: violationKinds[v.Kind], HolderKind: holderKinds[v.Holder.Kind], Holder: v.Holder.Name, Item: v.Item,
			Seen: fromSeen(v.Seen), Reason: v.Reason, Alternative: int32(v.Alternative),
			NeverFits: v.NeverFits(), Excess: int64(v.Excess()),
		})
	}
	return wire
}

// violationKinds is the one table of what is limited.
var violationKinds = map[quota.ViolationKind]quoratev1.ViolationKind{
	quota.OfResource:     quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE,
	quota.OfApplications: quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS,
	quota.OfBorrowing:    quoratev1.ViolationKind_VIOLATION_KIND_BORROWING,
	quota.OfItems:        quoratev1.ViolationKind_VIOLATION_KIND_ITEMS,
	quota.OfQueue:        quoratev1.ViolationKind_VIOLATION_KIND_QUEUE,
	quota.OfHold:         quoratev1.ViolationKind_VIOLATION_KIND_CORDON,
}

// holderKinds is the one table of whose limit it is.
var holderKinds = map[quota.HolderKind]quoratev1.HolderKind{
	quota.TheNode: quoratev1.HolderKind_HOLDER_KIND_NODE,
	quota.AUser:   quoratev1.HolderKind_HOLDER_KIND_USER,
	quota.AGroup:  quoratev1.HolderKind_HOLDER_KIND_GROUP,
}

func fromPreempted(list []quota.Preempted) []*quoratev1.Preempted {
	var wire []*quoratev1.Preempted
	for _, p := range list {
		namespace, id := quota.SplitID(p.ID)
		if p.ID == "" { // the caller may not know it
			namespace = ""
		}
		wire = append(wire, &quoratev1.Preempted{
			Namespace: namespace, Id: id, Tree: p.Tree, Node: p.Node, Reason: fromReason(p.Reason),
		})
	}
	return wire
}

func fromRemedy(r *quota.Remedy) *quoratev1.Remedy {
	if r == nil {
		return nil
	}
	wire := &quoratev1.Remedy{Releases: FromIDs(r.Releases), Alternative: int32(r.Alternative)}
	for _, raise := range r.Raises {
		wire.Raises = append(wire.Raises, &quoratev1.Raise{
			Tree: raise.Tree, Node: raise.Node, Resource: raise.Resource, Limit: int64(raise.From), NewLimit: int64(raise.To),
			Kind: violationKinds[raise.Kind], HolderKind: holderKinds[raise.Holder.Kind], Holder: raise.Holder.Name,
			Unconfigured: raise.Unconfigured, NeedsReason: raise.NeedsReason,
		})
	}
	return wire
}

// states is the one table of states.
var states = map[quota.State]quoratev1.AllocationState{
	quota.Held:         quoratev1.AllocationState_ALLOCATION_STATE_HELD,
	quota.Reserved:     quoratev1.AllocationState_ALLOCATION_STATE_RESERVED,
	quota.Released:     quoratev1.AllocationState_ALLOCATION_STATE_RELEASED,
	quota.Expired:      quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED,
	quota.WasPreempted: quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED,
	quota.Cancelled:    quoratev1.AllocationState_ALLOCATION_STATE_CANCELLED,
	quota.Waiting:      quoratev1.AllocationState_ALLOCATION_STATE_WAITING,
	quota.TimedOut:     quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT,
	quota.Abandoned:    quoratev1.AllocationState_ALLOCATION_STATE_ABANDONED,
}

// ToListedState is the state that a list of allocations is limited to; nil if it is not.
func ToListedState(state quoratev1.AllocationState) *quota.State {
	for listed, name := range states {
		if name == state {
			return &listed
		}
	}
	return nil
}

// FromAllocation converts an allocation.
func FromAllocation(a quota.AllocationInfo) *quoratev1.Allocation {
	return FromAllocationParts(a, FromClaims(a.Claims), FromWall)
}

// FromClaims converts the claims of an allocation.
func FromClaims(claims []quota.ClaimInfo) []*quoratev1.HeldClaim {
	var wire []*quoratev1.HeldClaim
	for _, c := range claims {
		wire = append(wire, &quoratev1.HeldClaim{
			Tree: c.Tree, Node: c.Node, Amounts: fromVector(c.Amounts), Placed: c.Placed,
			Priority: c.Priority, PreemptionClass: c.Type, Unpreemptable: c.Unpreemptable, Group: c.Group,
			Items: fromHeldItems(c.Items), Picks: fromPicks(c.Picks), Ranges: fromRanges(c.Ranges),
		})
	}
	return wire
}

// FromAllocationParts is FromAllocation with the messages of the claims, and a function that converts times.
func FromAllocationParts(
	a quota.AllocationInfo, claims []*quoratev1.HeldClaim, fromWall func(ms int64) *timestamppb.Timestamp,
) *quoratev1.Allocation {
	namespace, id := quota.SplitID(a.ID)
	wire := &quoratev1.Allocation{
		Namespace: namespace, Id: id, Labels: fromLabels(a.Labels), State: states[a.State], Claims: claims,
		Fence: a.Fence, GrantedLedgerMs: int64(a.GrantedAt), Principal: fromPrincipal(a.Principal), Forced: a.Forced,
		ReservedUntilLedgerMs: int64(a.ReservedUntil),
		PreemptedBy:           FromID(a.PreemptedBy), Preempted: fromPreempted(a.Preempted),
		TtlMs: int64(a.TTL), ExpiresLedgerMs: int64(a.ExpiresAt), RevokedBy: FromID(a.RevokedBy),
		UserData: fromLabels(a.Data),
		Priority: a.Priority, Waiting: fromWaiting(a.Waiting), Generation: a.Generation, SplitFrom: FromID(a.SplitFrom),
		Reason: fromReason(a.Reason), MadeRoom: fromMadeRoom(a.MadeRoom), Alternative: int32(a.Alternative),
		ForMs: int64(a.For), EndsLedgerMs: int64(a.EndsAt),
		Owner: a.Owner, Resize: fromResize(a.Resize),
	}
	if a.Fence != 0 {
		wire.GrantedAt = fromWall(a.GrantedWall)
	}
	if a.Ended {
		wire.EndedAt = fromWall(a.EndedWall)
	}
	return wire
}

// fromWaiting is nil if it does not wait.
func fromWaiting(w *quota.WaitingInfo) *quoratev1.Waiting {
	if w == nil {
		return nil
	}
	wire := &quoratev1.Waiting{
		ArrivedLedgerMs: int64(w.Since), ArrivedAt: FromWall(w.SinceWall), UntilLedgerMs: int64(w.Until),
		KeepUntilLedgerMs: int64(w.KeepUntil), CertainByLedgerMs: int64(w.CertainBy),
		Position: int64(w.Position), Line: w.Line,
	}
	for _, at := range w.Alternatives {
		wire.Alternatives = append(wire.Alternatives, &quoratev1.WaitingAlternative{
			Alternative: int32(at.Alternative), Claims: FromClaims(at.Claims), Position: int64(at.Position), Line: at.Line,
		})
	}
	return wire
}

// fromResize is nil if no resize waits.
func fromResize(r *quota.WaitingResize) *quoratev1.WaitingResize {
	if r == nil {
		return nil
	}
	wire := &quoratev1.WaitingResize{Generation: r.Generation, Waiting: fromWaiting(&r.Waiting)}
	for _, c := range r.Claims {
		wire.Claims = append(wire.Claims, &quoratev1.ClaimChange{
			Tree: c.Tree, Node: c.Node, Amounts: fromVector(c.Amounts),
		})
	}
	return wire
}

// fromPrincipal is nil if the request names no user and no group.
func fromPrincipal(p quota.Principal) *quoratev1.Principal {
	if p.User == "" {
		return nil
	}
	return &quoratev1.Principal{User: p.User, Groups: p.Groups, Application: p.Application}
}

// EventKinds is the one table of kinds of event; in a filter the zero is any.
var EventKinds = map[quoratev1.EventKind]quota.EventKind{
	quoratev1.EventKind_EVENT_KIND_UNSPECIFIED: 0,
	quoratev1.EventKind_EVENT_KIND_DENIED:      quota.EventDenied,
	quoratev1.EventKind_EVENT_KIND_PREEMPTED:   quota.EventPreempted,
	quoratev1.EventKind_EVENT_KIND_EXPIRED:     quota.EventExpired,
	quoratev1.EventKind_EVENT_KIND_RESTORED:    quota.EventRestored,
	quoratev1.EventKind_EVENT_KIND_REVOKED:     quota.EventRevoked,
	quoratev1.EventKind_EVENT_KIND_DROPPED:     quota.EventDropped,
	quoratev1.EventKind_EVENT_KIND_CROSSED:     quota.EventCrossed,
	quoratev1.EventKind_EVENT_KIND_CLEARED:     quota.EventCleared,
	quoratev1.EventKind_EVENT_KIND_DRAINED:     quota.EventDrained,

	quoratev1.EventKind_EVENT_KIND_WEBHOOK_DEAD:    quota.EventWebhookDead,
	quoratev1.EventKind_EVENT_KIND_LIMIT_STARTED:   quota.EventLimitStarted,
	quoratev1.EventKind_EVENT_KIND_LIMIT_ENDING:    quota.EventLimitEnding,
	quoratev1.EventKind_EVENT_KIND_LIMIT_SKIPPED:   quota.EventLimitSkipped,
	quoratev1.EventKind_EVENT_KIND_LIMIT_ENDED:     quota.EventLimitEnded,
	quoratev1.EventKind_EVENT_KIND_LIMIT_SCHEDULED: quota.EventLimitScheduled,
	quoratev1.EventKind_EVENT_KIND_DECLARED_END:    quota.EventDeclaredEnd,
}

func fromEventKind(kind quota.EventKind) quoratev1.EventKind {
	for wire, known := range EventKinds { // at most one fits
		if known == kind {
			return wire
		}
	}
	return quoratev1.EventKind_EVENT_KIND_UNSPECIFIED
}

// FromEvent converts an event.
func FromEvent(e quota.Event) *quoratev1.Event {
	wire := &quoratev1.Event{
		Number: e.Number, Kind: fromEventKind(e.Kind), Id: e.ID, Tree: e.Tree, Node: e.Node,
		HappenedLedgerMs: int64(e.Stamp.At), HappenedAt: FromWall(e.Stamp.Wall),
	}
	if e.IsOfAllocation() {
		wire.Namespace, wire.Id = quota.SplitID(e.ID)
	}
	if e.IsByAllocation() {
		wire.By = FromID(e.By)
	} else {
		wire.Actor = e.By
	}
	switch {
	case e.Decision != nil:
		wire.Detail = &quoratev1.Event_Decision{Decision: FromDecision(*e.Decision, nil)}
	case e.Crossing != nil:
		wire.Detail = &quoratev1.Event_Crossing{Crossing: FromCrossing(e.Crossing, e.Kind == quota.EventCleared)}
	case e.Scheduled != nil:
		wire.Detail = &quoratev1.Event_Scheduled{Scheduled: fromScheduledEvent(e.Scheduled)}
	case e.Reason != nil:
		wire.Detail = &quoratev1.Event_Reason{Reason: fromReason(e.Reason)}
	}
	return wire
}

// FromWall is a wall-clock time in milliseconds since 1970.
func FromWall(ms int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(ms)) }

// FromPrincipalUsage converts the usage of a user or a group.
func FromPrincipalUsage(p quota.PrincipalUsage) *quoratev1.PrincipalUsage {
	shown := &quoratev1.PrincipalUsage{Name: p.Name, Groups: fromLabels(p.Groups), Users: p.Users}
	for _, n := range p.Nodes {
		shown.Nodes = append(shown.Nodes, &quoratev1.PrincipalNode{
			Node: n.Path, Used: fromVector(n.Used), Applications: n.Applications,
			Limits: fromBounds(n.Limits), MaxApplications: fromBound(n.MaxApplications), Wildcard: n.Wildcard,
			Members: fromMembers(n.Members), MoreMembers: int64(n.MoreMembers),
		})
	}
	return shown
}

func fromMembers(list []quota.GroupMember) []*quoratev1.GroupMember {
	var shown []*quoratev1.GroupMember
	for _, m := range list {
		shown = append(shown, &quoratev1.GroupMember{
			User: m.User, Used: fromVector(m.Used), Applications: m.Applications,
		})
	}
	return shown
}
