package fsm

import (
	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func appendLength(buffer []byte, n int) []byte {
	return protowire.AppendVarint(buffer, uint64(n))
}

func encodeTreeImage(t ledger.TreeImage) *logv1.TreeRecord {
	record := &logv1.TreeRecord{
		Tree: encodeTree(quota.TreeSpec{Name: t.Name, TreeSettings: t.Settings, Resources: t.Resources}),
	}
	record.ItemNumbers, record.Version = t.ItemNumbers, t.Version
	for _, n := range t.Nodes {
		record.Tree.Nodes = append(record.Tree.Nodes, encodeNode(*n.Spec))
		record.NodeIds = append(record.NodeIds, n.ID)
		if n.Made {
			record.Made = append(record.Made, n.ID)
		}
		if n.RaisedByRule != 0 {
			record.Raises = append(record.Raises, &logv1.RaiseByRule{NodeId: n.ID, AtMs: int64(n.RaisedByRule)})
		}
		for _, c := range n.Crossed {
			record.Crossed = append(record.Crossed, encodeCrossed(n.ID, c))
		}
		if n.Hold != nil {
			record.Holds = append(record.Holds, encodeHold(n.ID, n.Hold))
		}
	}
	return record
}

func decodeTreeImage(r *logv1.TreeRecord) ledger.TreeImage {
	spec := decodeTree(r.GetTree())
	image := ledger.TreeImage{
		Name: spec.Name, Settings: spec.TreeSettings, Resources: spec.Resources, ItemNumbers: r.GetItemNumbers(),
		Version: r.GetVersion(),
	}
	made := map[uint64]bool{}
	for _, id := range r.GetMade() {
		made[id] = true
	}
	raises := map[uint64]quota.Instant{}
	for _, raise := range r.GetRaises() {
		raises[raise.GetNodeId()] = quota.Instant(raise.GetAtMs())
	}
	crossed := map[uint64][]ledger.CrossedImage{}
	for _, c := range r.GetCrossed() {
		crossed[c.GetNodeId()] = append(crossed[c.GetNodeId()], decodeCrossed(c))
	}
	holds := map[uint64]*ledger.HoldImage{}
	for _, hold := range r.GetHolds() {
		holds[hold.GetNodeId()] = decodeHold(hold)
	}
	for i := range spec.Nodes {
		n := ledger.NodeImage{Spec: &spec.Nodes[i]}
		if i < len(r.GetNodeIds()) {
			n.ID = r.GetNodeIds()[i]
			n.Made, n.RaisedByRule, n.Crossed, n.Hold = made[n.ID], raises[n.ID], crossed[n.ID], holds[n.ID]
		}
		image.Nodes = append(image.Nodes, n)
	}
	return image
}

func encodeRevision(r *quota.Revision) *logv1.RevisionRecord {
	return &logv1.RevisionRecord{
		Revision: r.Number, Actor: r.Actor, Reason: r.Reason, WallMs: r.Wall, RequestId: r.RequestID,
		Fingerprint: []byte(r.Fingerprint),
		ChangeCount: uint32(r.ChangeCount),
		Changes: each(r.Changes, func(c quota.Change) *logv1.ChangeRecord {
			return &logv1.ChangeRecord{
				Kind: uint32(c.Kind), Tree: c.Tree, Node: c.Node, Field: c.Field,
				Before: c.Before, After: c.After,
			}
		}),
		Undo: each(r.Undo, encodeUndo), Undoable: r.Undoable, UndoPolicies: each(r.UndoPolicies, encodePolicyUndo),
		UndoAccess: encodeOptionalSection(r.UndoAccess), Subtree: encodeSubtree(r.Subtree),
		Request: encodeApproved(r.Request),
	}
}

func encodePolicyUndo(u quota.PolicyUndo) *logv1.PolicyUndo {
	return &logv1.PolicyUndo{Policy: encodePolicy(u.PolicySpec), Added: u.Added}
}

func decodePolicyUndo(u *logv1.PolicyUndo) quota.PolicyUndo {
	return quota.PolicyUndo{PolicySpec: decodePolicy(u.GetPolicy()), Added: u.GetAdded()}
}

func encodeUndo(u quota.TreeUndo) *logv1.TreeUndo {
	return &logv1.TreeUndo{
		Name: u.Name, Added: u.Added, Removed: u.Removed, Forest: u.Forest, RequireReason: u.RequireReason,
		Resources: each(u.Resources, encodeResource), Nodes: each(u.Nodes, encodeNode), AddedPaths: u.AddedPaths,
		Moves:  each(u.Moves, encodeMove),
		Leases: encodeLeases(u.Leases), OvertakeMs: int64(u.Overtake), TenantsSee: uint32(u.TenantsSee),
		RequirePrincipal: u.RequirePrincipal,
		Approvals:        int64(u.Approvals),
	}
}

func decodeUndo(u *logv1.TreeUndo) quota.TreeUndo {
	return quota.TreeUndo{
		Name: u.GetName(), Added: u.GetAdded(), Removed: u.GetRemoved(),
		TreeSettings: quota.TreeSettings{
			Forest: u.GetForest(), RequireReason: u.GetRequireReason(),
			Leases: decodeLeases(u.GetLeases()), Overtake: quota.Span(u.GetOvertakeMs()),
			TenantsSee: decodeTenantsSee(u.GetTenantsSee()), RequirePrincipal: u.GetRequirePrincipal(),
			Approvals: decodeCount(u.GetApprovals()),
		},
		Resources: each(u.GetResources(), decodeResource), Nodes: each(u.GetNodes(), decodeNode),
		AddedPaths: u.GetAddedPaths(), Moves: each(u.GetMoves(), decodeMove),
	}
}

func decodeRevision(r *logv1.RevisionRecord) *quota.Revision {
	return &quota.Revision{
		Number: r.GetRevision(), Actor: r.GetActor(), Reason: r.GetReason(), Wall: r.GetWallMs(),
		RequestID:   r.GetRequestId(),
		Fingerprint: string(r.GetFingerprint()), ChangeCount: int(r.GetChangeCount()),
		Changes: each(r.GetChanges(), func(c *logv1.ChangeRecord) quota.Change {
			return quota.Change{
				Kind: quota.ChangeKind(c.GetKind()), Tree: c.GetTree(), Node: c.GetNode(), Field: c.GetField(),
				Before: c.GetBefore(), After: c.GetAfter(),
			}
		}),
		Undo: each(r.GetUndo(), decodeUndo), Undoable: r.GetUndoable(),
		UndoPolicies: each(r.GetUndoPolicies(), decodePolicyUndo), UndoAccess: decodeOptionalSection(r.GetUndoAccess()),
		Subtree: decodeSubtree(r.GetSubtree()), Request: decodeApproved(r.GetRequest()),
	}
}

func encodeAllocation(a ledger.AllocationImage) *logv1.AllocationRecord {
	record := &logv1.AllocationRecord{
		Request: encodeAllocate(a.Request), Fence: a.Fence, GrantedMs: int64(a.Granted.At),
		GrantedWallMs: a.Granted.Wall,
		Placed:        a.Placed, PlacedPaths: a.PlacedPaths, Homes: a.Homes, Seats: a.ArrivalSeqs, Groups: a.Groups,
		State: uint32(a.State), UntilMs: int64(a.Until), Forced: a.Forced, By: a.By,
		Preempted: each(a.Preempted, encodePreempted), Displaced: each(a.Displaced, encodeDisplacement),
		ExpiresMs: int64(a.Expires), TtlMs: int64(a.TTL), RevokedBy: a.RevokedBy, Unclaimed: a.Unclaimed,
		Data: each(a.Data, encodeLabel), Items: each(a.Items, encodeHeldItem), Undo: encodeReservationUndo(a.Undo),
		Owner: a.Owner, Generation: a.Generation, First: each(a.First, encodeClaim), SplitFrom: a.SplitFrom,
		EndReason: encodeReason(a.EndReason), RevokeReason: encodeReason(a.RevokeReason),
		MadeRoom:          encodeMadeRoom(a.MadeRoom),
		Alternative:       uint32(a.Alternative),
		DeclaredEndMs:     int64(a.DeclaredEnd),
		DroppedGeneration: a.Dropped, Change: a.Change,
	}
	if a.State == quota.Released {
		record.State = 0 // nearly all ends are releases, so that one takes no bytes
	}
	if a.Ended != nil {
		record.EndedMs, record.EndedWallMs = int64(a.Ended.At), a.Ended.Wall
	}
	return record
}

func decodeAllocation(r *logv1.AllocationRecord, ended bool) ledger.AllocationImage {
	a := ledger.AllocationImage{
		Request: decodeAllocate(r.GetRequest()), Fence: r.GetFence(),
		Granted: quota.Stamp{At: quota.Instant(r.GetGrantedMs()), Wall: r.GetGrantedWallMs()},
		Placed:  r.GetPlaced(), PlacedPaths: r.GetPlacedPaths(), Homes: r.GetHomes(), ArrivalSeqs: r.GetSeats(),
		Groups: r.GetGroups(),
		State:  quota.State(min(r.GetState(), 255)), Until: quota.Instant(r.GetUntilMs()),
		Forced: r.GetForced(), By: r.GetBy(),
		Preempted: each(r.GetPreempted(), decodePreempted), Displaced: each(r.GetDisplaced(), decodeDisplacement),
		Expires: quota.Instant(r.GetExpiresMs()), TTL: quota.Span(r.GetTtlMs()), RevokedBy: r.GetRevokedBy(),
		Unclaimed: r.GetUnclaimed(),
		Data:      each(r.GetData(), decodeLabel), Items: each(r.GetItems(), decodeHeldItem),
		Undo: decodeReservationUndo(r.GetUndo()), Owner: r.GetOwner(),
		Generation: r.GetGeneration(), First: each(r.GetFirst(), decodeClaim), SplitFrom: r.GetSplitFrom(),
		EndReason: decodeReason(r.GetEndReason()), RevokeReason: decodeReason(r.GetRevokeReason()),
		MadeRoom:    decodeMadeRoom(r.GetMadeRoom()),
		Alternative: int(r.GetAlternative()),
		DeclaredEnd: quota.Instant(r.GetDeclaredEndMs()),
		Dropped:     r.GetDroppedGeneration(), Change: r.GetChange(),
	}
	if ended {
		a.Ended = &quota.Stamp{At: quota.Instant(r.GetEndedMs()), Wall: r.GetEndedWallMs()}
	}
	return a
}

func encodePreempted(p quota.Preempted) *logv1.PreemptedRecord {
	return &logv1.PreemptedRecord{Id: p.ID, Tree: p.Tree, Node: p.Node, Reason: encodeReason(p.Reason)}
}

func decodePreempted(p *logv1.PreemptedRecord) quota.Preempted {
	return quota.Preempted{ID: p.GetId(), Tree: p.GetTree(), Node: p.GetNode(), Reason: decodeReason(p.GetReason())}
}

func encodeDisplacement(d ledger.DisplacementImage) *logv1.Displacement {
	return &logv1.Displacement{
		Id: d.ID, Claim: int64(d.Claim), From: d.From, Home: d.Home,
		FromSeat: d.FromSeq, Seat: d.NewSeq,
	}
}

func decodeDisplacement(d *logv1.Displacement) ledger.DisplacementImage {
	return ledger.DisplacementImage{
		ID: d.GetId(), Claim: int(d.GetClaim()), From: d.GetFrom(), Home: d.GetHome(),
		FromSeq: d.GetFromSeat(), NewSeq: d.GetSeat(),
	}
}

func encodeEvent(e *quota.Event) *logv1.EventRecord {
	record := &logv1.EventRecord{
		Number: e.Number, Kind: uint32(e.Kind), Id: e.ID, By: e.By, TimeMs: int64(e.Stamp.At), WallMs: e.Stamp.Wall,
		Owner: e.Owner, Crossing: encodeCrossing(e.Crossing), Tree: e.Tree, Node: e.Node,
		ScheduledLimit: encodeScheduledEvent(e.Scheduled), Reason: encodeReason(e.Reason),
	}
	if e.Request != nil {
		record.Request = encodeAllocate(*e.Request)
	}
	if e.Decision != nil {
		record.Violations = each(e.Decision.Violations, encodeViolation)
	}
	return record
}

func decodeEvent(r *logv1.EventRecord) *quota.Event {
	e := &quota.Event{
		Number: r.GetNumber(), Kind: quota.EventKind(min(r.GetKind(), 255)), ID: r.GetId(), By: r.GetBy(),
		Owner: r.GetOwner(), Crossing: decodeCrossing(r.GetCrossing()),
		Tree: r.GetTree(), Node: r.GetNode(),
		Scheduled: decodeScheduledEvent(r.GetScheduledLimit()), Reason: decodeReason(r.GetReason()),
		Stamp: quota.Stamp{At: quota.Instant(r.GetTimeMs()), Wall: r.GetWallMs()},
	}
	if r.GetRequest() != nil {
		request := decodeAllocate(r.GetRequest())
		e.Request = &request
	}
	if e.Kind == quota.EventDenied {
		e.Decision = &quota.Decision{Violations: each(r.GetViolations(), decodeViolation)}
	}
	return e
}

func encodeViolation(v quota.Violation) *logv1.ViolationRecord {
	return &logv1.ViolationRecord{
		Tree: v.Tree, Node: v.Node, Resource: v.Resource, Limit: int64(v.Limit), Used: int64(v.Used),
		Requested: int64(v.Requested),
		Kind:      uint32(v.Kind), HolderKind: uint32(v.Holder.Kind), Holder: v.Holder.Name, Item: v.Item,
		TooLarge: v.TooLarge, Reason: v.Reason, Alternative: uint32(v.Alternative),
	}
}

func decodeViolation(v *logv1.ViolationRecord) quota.Violation {
	return quota.Violation{
		Tree: v.GetTree(), Node: v.GetNode(), Resource: v.GetResource(),
		Limit: quota.Amount(v.GetLimit()), Used: quota.Amount(v.GetUsed()), Requested: quota.Amount(v.GetRequested()),
		Kind:   quota.ViolationKind(min(v.GetKind(), 255)),
		Holder: quota.Holder{Kind: quota.HolderKind(min(v.GetHolderKind(), 255)), Name: v.GetHolder()},
		Item:   v.GetItem(), TooLarge: v.GetTooLarge(), Reason: v.GetReason(),
		Alternative: int(v.GetAlternative()),
	}
}

func encodeWaiting(w ledger.WaitingImage) *logv1.WaitingRecord {
	return &logv1.WaitingRecord{
		Allocation: encodeAllocation(w.Allocation), Arrival: w.Arrival,
		SinceMs: int64(w.Since.At), SinceWallMs: w.Since.Wall, UntilMs: int64(w.Until), KeepUntilMs: int64(w.KeepUntil),
		Line: encodeLine(w.Line), HeadSinceMs: int64(w.HeadSince), Others: each(w.Others, encodeWaitingList),
		Resizes: w.Resizes,
	}
}

func encodeLine(line ledger.BlockerImage) *logv1.LineRecord {
	return &logv1.LineRecord{
		Node: line.Node, Resource: line.Resource, Tree: line.Tree, State: line.State, Item: line.Item,
		HolderKind: uint32(line.Holder.Kind), Holder: line.Holder.Name,
		Hold: line.IsHold, Aside: line.IsAside,
	}
}

func decodeLine(line *logv1.LineRecord) ledger.BlockerImage {
	return ledger.BlockerImage{
		Node: line.GetNode(), Resource: line.GetResource(), Tree: line.GetTree(), State: line.GetState(),
		Item: line.GetItem(), IsHold: line.GetHold(), IsAside: line.GetAside(),
		Holder: quota.Holder{Kind: quota.HolderKind(min(line.GetHolderKind(), 255)), Name: line.GetHolder()},
	}
}

func encodeWaitingList(list ledger.AlternativeImage) *logv1.WaitingListRecord {
	return &logv1.WaitingListRecord{
		Alternative: uint32(list.Number), Placed: list.Placed, PlacedPaths: list.PlacedPaths,
		Line: encodeLine(list.Line), HeadSinceMs: int64(list.HeadSince),
	}
}

func decodeWaitingList(r *logv1.WaitingListRecord) ledger.AlternativeImage {
	return ledger.AlternativeImage{
		Number: int(r.GetAlternative()), Placed: r.GetPlaced(), PlacedPaths: r.GetPlacedPaths(),
		Line: decodeLine(r.GetLine()), HeadSince: quota.Instant(r.GetHeadSinceMs()),
	}
}

func decodeWaiting(r *logv1.WaitingRecord) ledger.WaitingImage {
	return ledger.WaitingImage{
		Allocation: decodeAllocation(r.GetAllocation(), false), Arrival: r.GetArrival(),
		Since: quota.Stamp{At: quota.Instant(r.GetSinceMs()), Wall: r.GetSinceWallMs()},
		Until: quota.Instant(r.GetUntilMs()), KeepUntil: quota.Instant(r.GetKeepUntilMs()),
		Line: decodeLine(r.GetLine()), HeadSince: quota.Instant(r.GetHeadSinceMs()),
		Others: each(r.GetOthers(), decodeWaitingList), Resizes: r.GetResizes(),
	}
}

func encodeReservationUndo(u *ledger.UndoImage) *logv1.ReservationUndo {
	if u == nil {
		return nil
	}
	return &logv1.ReservationUndo{
		Arrival: u.Arrival, LiveBytes: u.LiveBytes,
		Trees: each(u.Trees, func(v ledger.TreeVersionImage) *logv1.TreeVersion {
			return &logv1.TreeVersion{Tree: v.Tree, Before: v.Before, After: v.After}
		}),
		Nodes: each(u.Nodes, func(n ledger.DynamicNodeImage) *logv1.DynamicNode {
			return &logv1.DynamicNode{Tree: n.Tree, Path: n.Path, Id: n.ID}
		}),
		Items: each(u.Items, func(b ledger.ItemBeforeImage) *logv1.ItemBefore {
			return &logv1.ItemBefore{Item: encodeItem(b.ItemImage), IsNew: b.IsNew, Owner: b.Owner, Turn: b.Now}
		}),
	}
}

func decodeReservationUndo(u *logv1.ReservationUndo) *ledger.UndoImage {
	if u == nil {
		return nil
	}
	return &ledger.UndoImage{
		Arrival: u.GetArrival(), LiveBytes: u.GetLiveBytes(),
		Trees: each(u.GetTrees(), func(v *logv1.TreeVersion) ledger.TreeVersionImage {
			return ledger.TreeVersionImage{Tree: v.GetTree(), Before: v.GetBefore(), After: v.GetAfter()}
		}),
		Nodes: each(u.GetNodes(), func(n *logv1.DynamicNode) ledger.DynamicNodeImage {
			return ledger.DynamicNodeImage{Tree: n.GetTree(), Path: n.GetPath(), ID: n.GetId()}
		}),
		Items: each(u.GetItems(), func(b *logv1.ItemBefore) ledger.ItemBeforeImage {
			return ledger.ItemBeforeImage{
				ItemImage: decodeItem(b.GetItem()), IsNew: b.GetIsNew(), Owner: b.GetOwner(),
				Now: b.GetTurn(),
			}
		}),
	}
}
