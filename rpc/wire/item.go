package wire

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func toPicks(picks []*quoratev1.ItemPick) []quota.Pick {
	var list []quota.Pick
	for _, p := range picks {
		names := slices.Sorted(slices.Values(p.GetNames()))
		list = append(list, quota.Pick{
			Resource: p.GetResource(), Count: cmp.Or(int(p.GetCount()), len(names), 1),
			State: p.GetState(), Names: names, HeldState: p.GetHeldState(),
		})
	}
	slices.SortStableFunc(list, func(a, b quota.Pick) int { return strings.Compare(a.Resource, b.Resource) })
	return list
}

func fromPicks(picks []quota.Pick) []*quoratev1.ItemPick {
	var wire []*quoratev1.ItemPick
	for _, p := range picks {
		wire = append(wire, &quoratev1.ItemPick{
			Resource: p.Resource, Count: int64(p.Count), State: p.State,
			Names: p.Names, HeldState: p.HeldState,
		})
	}
	return wire
}

func toItemName(n *quoratev1.ItemName) quota.ItemName {
	return quota.ItemName{Tree: n.GetTree(), Resource: n.GetResource(), Name: n.GetName()}
}

// ToItemNames converts names of items.
func ToItemNames(names []*quoratev1.ItemName) []quota.ItemName {
	var list []quota.ItemName
	for _, n := range names {
		list = append(list, toItemName(n))
	}
	return list
}

// ToItemUpdates keeps the order: the answer has it too.
func ToItemUpdates(updates []*quoratev1.ItemUpdate) []quota.ItemUpdate {
	var list []quota.ItemUpdate
	for _, u := range updates {
		list = append(list, quota.ItemUpdate{
			Item: toItemName(u.GetItem()), State: u.GetState(),
			Data: ToLabels(u.GetUserData()),
		})
	}
	return list
}

// FromItem converts an item.
func FromItem(i quota.ItemInfo) *quoratev1.Item {
	return &quoratev1.Item{
		Name:  &quoratev1.ItemName{Tree: i.Tree, Resource: i.Resource, Name: i.Name},
		State: i.State, Owner: i.Owner, Allocation: FromID(i.Allocation), Fence: i.Fence, UserData: fromLabels(i.Data),
		UpdatedLedgerMs: int64(i.Updated), UpdatedAt: FromWall(i.UpdatedWall),
		ExpiresLedgerMs: int64(i.Expires), ExpiresAt: fromWallIf(i.Expires, i.ExpiresWall), Leaving: i.Leaving,
		HeldUntilLedgerMs: int64(i.HeldUntil),
	}
}

// fromWallIf is nil without an instant.
func fromWallIf(at quota.Instant, wall int64) *timestamppb.Timestamp {
	if at == 0 {
		return nil
	}
	return FromWall(wall)
}

func fromHeldItems(items []quota.HeldItem) []*quoratev1.HeldItem {
	var wire []*quoratev1.HeldItem
	for _, i := range items {
		wire = append(wire, &quoratev1.HeldItem{
			Resource: i.Resource, Name: i.Name, State: i.State, UserData: fromLabels(i.Data),
			UpdatedAt: FromWall(i.UpdatedWall),
		})
	}
	return wire
}

// FromItemCount converts the counts of one resource.
func FromItemCount(c quota.ItemCount) *quoratev1.ItemCount {
	return &quoratev1.ItemCount{
		Tree: c.Tree, Resource: c.Resource, States: FromCounts(c.States), Owners: FromCounts(c.Owners),
		Waiting: int64(c.Waiting),
	}
}

// FromCounts converts counts by name.
func FromCounts(counts []quota.NamedCount) map[string]int64 {
	wire := make(map[string]int64, len(counts))
	for _, c := range counts {
		wire[c.Name] = int64(c.Count)
	}
	return wire
}

// queueings is the one table of whether requests may overtake each other.
var queueings = map[quoratev1.Queueing]quota.Queueing{
	quoratev1.Queueing_QUEUEING_UNSPECIFIED: quota.InheritQueueing,
	quoratev1.Queueing_QUEUEING_STRICT:      quota.Strict,
	quoratev1.Queueing_QUEUEING_BEST_EFFORT: quota.BestEffort,
}

func fromQueueing(q quota.Queueing) quoratev1.Queueing {
	for wire, known := range queueings { // at most one fits
		if known == q {
			return wire
		}
	}
	return quoratev1.Queueing_QUEUEING_UNSPECIFIED
}

func toItemSpec(s *quoratev1.ItemSpec) *quota.ItemSpec {
	if s == nil {
		return nil
	}
	spec := &quota.ItemSpec{
		Names: slices.Sorted(slices.Values(s.GetNames())), Min: int(s.GetMin()), Max: int(s.GetMax()),
		Lifespan: quota.Span(s.GetLifespanMs()),
		State:    s.GetState(), Released: s.GetReleased(), Expired: s.GetExpired(), TTL: quota.Span(s.GetTtlMs()),
		Queueing: queueings[s.GetQueueing()], Retired: s.GetRetired(), Removed: s.GetRemoved(),
	}
	for _, t := range s.GetTurns() {
		spec.Turns = append(spec.Turns, quota.Turn{
			From: t.GetState(), To: t.GetNewState(),
			After: quota.Span(t.GetAfterMs()),
		})
	}
	slices.SortStableFunc(spec.Turns, func(a, b quota.Turn) int { return strings.Compare(a.From, b.From) })
	return spec
}

func fromItemSpec(s *quota.ItemSpec) *quoratev1.ItemSpec {
	if s == nil {
		return nil
	}
	wire := &quoratev1.ItemSpec{
		Names: s.Names, Min: int64(s.Min), Max: int64(s.Max), LifespanMs: int64(s.Lifespan),
		State: s.State, Released: s.Released, Expired: s.Expired, TtlMs: int64(s.TTL),
		Queueing: fromQueueing(s.Queueing), Retired: s.Retired, Removed: s.Removed,
	}
	for _, t := range s.Turns {
		wire.Turns = append(wire.Turns, &quoratev1.ItemTurn{State: t.From, NewState: t.To, AfterMs: int64(t.After)})
	}
	return wire
}
