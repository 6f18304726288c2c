package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Items in commands, in the configuration and in snapshots, both ways.

func encodePick(p quota.Pick) *logv1.Pick {
	return &logv1.Pick{
		Resource: p.Resource, Count: int64(p.Count), State: p.State, Names: p.Names,
		HeldState: p.HeldState,
	}
}

func decodePick(p *logv1.Pick) quota.Pick {
	return quota.Pick{
		Resource: p.GetResource(), Count: int(p.GetCount()), State: p.GetState(), Names: p.GetNames(),
		HeldState: p.GetHeldState(),
	}
}

func encodeItemName(n quota.ItemName) *logv1.ItemName {
	return &logv1.ItemName{Tree: n.Tree, Resource: n.Resource, Name: n.Name}
}

func decodeItemName(n *logv1.ItemName) quota.ItemName {
	return quota.ItemName{Tree: n.GetTree(), Resource: n.GetResource(), Name: n.GetName()}
}

func encodeItemUpdate(u quota.ItemUpdate) *logv1.ItemUpdate {
	return &logv1.ItemUpdate{Item: encodeItemName(u.Item), State: u.State, Data: each(u.Data, encodeLabel)}
}

func decodeItemUpdate(u *logv1.ItemUpdate) quota.ItemUpdate {
	return quota.ItemUpdate{
		Item: decodeItemName(u.GetItem()), State: u.GetState(),
		Data: each(u.GetData(), decodeLabel),
	}
}

func encodeItemSpec(s *quota.ItemSpec) *logv1.ItemSpec {
	if s == nil {
		return nil
	}
	return &logv1.ItemSpec{
		Names: s.Names, Min: int64(s.Min), Max: int64(s.Max), LifespanMs: int64(s.Lifespan),
		State: s.State, Released: s.Released, Expired: s.Expired, TtlMs: int64(s.TTL),
		Turns: each(s.Turns, func(t quota.Turn) *logv1.Turn {
			return &logv1.Turn{From: t.From, To: t.To, AfterMs: int64(t.After)}
		}),
		Queueing: uint32(s.Queueing), Retired: s.Retired, Removed: s.Removed,
	}
}

func decodeItemSpec(s *logv1.ItemSpec) *quota.ItemSpec {
	if s == nil {
		return nil
	}
	return &quota.ItemSpec{
		Names: s.GetNames(), Min: int(s.GetMin()), Max: int(s.GetMax()), Lifespan: quota.Span(s.GetLifespanMs()),
		State: s.GetState(), Released: s.GetReleased(), Expired: s.GetExpired(), TTL: quota.Span(s.GetTtlMs()),
		Turns: each(s.GetTurns(), func(t *logv1.Turn) quota.Turn {
			return quota.Turn{From: t.GetFrom(), To: t.GetTo(), After: quota.Span(t.GetAfterMs())}
		}),
		Queueing: decodeQueueing(s.GetQueueing()), Retired: s.GetRetired(), Removed: s.GetRemoved(),
	}
}

// decodeQueueing maps every unknown number to an invalid value, which the ledger refuses.
func decodeQueueing(number uint32) quota.Queueing { return quota.Queueing(min(number, 255)) }

func encodeItem(i ledger.ItemImage) *logv1.ItemRecord {
	return &logv1.ItemRecord{
		Tree: i.Tree, Resource: i.Resource, Name: i.Name, State: i.State, Turn: i.StateSeq,
		UpdatedMs: int64(i.Updated.At), UpdatedWallMs: i.Updated.Wall, SinceMs: int64(i.Since),
		ExpiresMs: int64(i.Expires.At), ExpiresWallMs: i.Expires.Wall, Data: each(i.Data, encodeLabel),
		Leaving: i.Leaving,
	}
}

func decodeItem(r *logv1.ItemRecord) ledger.ItemImage {
	return ledger.ItemImage{
		ItemName: quota.ItemName{Tree: r.GetTree(), Resource: r.GetResource(), Name: r.GetName()}, State: r.GetState(),
		StateSeq: r.GetTurn(),
		Updated:  quota.Stamp{At: quota.Instant(r.GetUpdatedMs()), Wall: r.GetUpdatedWallMs()},
		Since:    quota.Instant(r.GetSinceMs()),
		Expires:  quota.Stamp{At: quota.Instant(r.GetExpiresMs()), Wall: r.GetExpiresWallMs()},
		Data:     each(r.GetData(), decodeLabel), Leaving: r.GetLeaving(),
	}
}

func encodeHeldItem(i ledger.HeldItemImage) *logv1.HeldItemRecord {
	return &logv1.HeldItemRecord{Claim: int64(i.Claim), Resource: i.Resource, Name: i.Name}
}

func decodeHeldItem(r *logv1.HeldItemRecord) ledger.HeldItemImage {
	return ledger.HeldItemImage{Claim: int(r.GetClaim()), Resource: r.GetResource(), Name: r.GetName()}
}
