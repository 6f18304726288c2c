package fsm

import (
	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// appendLength writes the length in front of a record.
func appendLength(buffer []byte, n int) []byte {
	return protowire.AppendVarint(buffer, uint64(n))
}

func encodeTreeImage(t quota.TreeImage) *logv1.TreeRecord {
	record := &logv1.TreeRecord{Tree: &logv1.Tree{Name: t.Name, Resources: each(t.Resources, encodeResource)}}
	for _, n := range t.Nodes {
		record.Tree.Nodes = append(record.Tree.Nodes, encodeNode(*n.Spec))
		record.NodeIds = append(record.NodeIds, n.ID)
	}
	return record
}

func decodeTreeImage(r *logv1.TreeRecord) quota.TreeImage {
	spec := decodeTree(r.GetTree())
	image := quota.TreeImage{Name: spec.Name, Resources: spec.Resources}
	for i := range spec.Nodes {
		n := quota.NodeImage{Spec: &spec.Nodes[i]}
		if i < len(r.GetNodeIds()) {
			n.ID = r.GetNodeIds()[i]
		}
		image.Nodes = append(image.Nodes, n)
	}
	return image
}

func encodeRevision(r *quota.Revision) *logv1.RevisionRecord {
	return &logv1.RevisionRecord{
		Revision: r.Number, Actor: r.Actor, Reason: r.Reason, WallMs: r.Wall, RequestId: r.RequestID, Fingerprint: []byte(r.Fingerprint),
		ChangeCount: uint32(r.ChangeCount),
		Changes: each(r.Changes, func(c quota.Change) *logv1.ChangeRecord {
			return &logv1.ChangeRecord{Kind: uint32(c.Kind), Tree: c.Tree, Node: c.Node, Field: c.Field, Before: c.Before, After: c.After}
		}),
	}
}

func decodeRevision(r *logv1.RevisionRecord) *quota.Revision {
	return &quota.Revision{
		Number: r.GetRevision(), Actor: r.GetActor(), Reason: r.GetReason(), Wall: r.GetWallMs(), RequestID: r.GetRequestId(),
		Fingerprint: string(r.GetFingerprint()), ChangeCount: int(r.GetChangeCount()),
		Changes: each(r.GetChanges(), func(c *logv1.ChangeRecord) quota.Change {
			return quota.Change{
				Kind: quota.ChangeKind(c.GetKind()), Tree: c.GetTree(), Node: c.GetNode(), Field: c.GetField(),
				Before: c.GetBefore(), After: c.GetAfter(),
			}
		}),
	}
}

func encodeAllocation(a quota.AllocationImage) *logv1.AllocationRecord {
	record := &logv1.AllocationRecord{
		Request: encodeAllocate(a.Request), Fence: a.Fence, GrantedMs: int64(a.Granted.At), GrantedWallMs: a.Granted.Wall,
		Placed: a.Placed, PlacedPaths: a.PlacedPaths,
	}
	if a.Ended != nil {
		record.EndedMs, record.EndedWallMs = int64(a.Ended.At), a.Ended.Wall
	}
	return record
}

func decodeAllocation(r *logv1.AllocationRecord, ended bool) quota.AllocationImage {
	a := quota.AllocationImage{
		Request: decodeAllocate(r.GetRequest()), Fence: r.GetFence(),
		Granted: quota.Stamp{At: quota.Instant(r.GetGrantedMs()), Wall: r.GetGrantedWallMs()},
		Placed:  r.GetPlaced(), PlacedPaths: r.GetPlacedPaths(),
	}
	if ended {
		a.Ended = &quota.Stamp{At: quota.Instant(r.GetEndedMs()), Wall: r.GetEndedWallMs()}
	}
	return a
}
