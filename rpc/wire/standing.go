package wire

import (
	"time"

	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/quota"
)

// maxStateDigests is the number of state digests of another node that are read; further ones are ignored.
const maxStateDigests = 8

// StandingToWire converts the status of a node for other nodes.
func StandingToWire(own cluster.NodeStatus) *peerv1.GetStandingResponse {
	wire := &peerv1.GetStandingResponse{
		Id: own.ID, State: own.State, Term: own.Term, AppliedIndex: own.AppliedIndex, LastIndex: own.LastIndex,
		Version: own.Version, FeatureLevel: own.FeatureLevel, Problem: own.Problem, Warning: own.Warning,
		LastContactMs: own.LastContact.Milliseconds(), WallMs: own.Wall, Instance: own.Instance,
		CivilTimeMs: int64(own.CivilTime), LedgerTimeMs: int64(own.LedgerTime),
		Candidate: own.PromoteWhenStable, LeaderId: own.Leader,
		ClusterLevel: own.ClusterLevel, RaftAddress: own.RaftAddr, HttpAddress: own.HTTPAddr,
		ClusterName:     own.ClusterName,
		BootstrapExpect: uint32(max(0, own.Expect)), BootstrapIntent: own.Intent,
		LogStore: own.LogStore, TimeZones: own.TimeZones,
		DiskFreeBytes: own.Disk.Free, DiskLow: own.Disk.Low, DiskSlow: own.Disk.Slow,
		DiskWriteMeanUs: own.Disk.WriteMean.Microseconds(), Quarantined: own.Quarantined,
	}
	for _, point := range own.Checkpoints {
		wire.StateDigests = append(wire.StateDigests, &peerv1.StateDigest{Index: point.Index, Digest: point.Digest})
	}
	return wire
}

// StandingFromWire is the inverse of StandingToWire.
func StandingFromWire(wire *peerv1.GetStandingResponse) cluster.NodeStatus {
	standing := cluster.NodeStatus{
		ID: wire.GetId(), State: wire.GetState(), Leader: wire.GetLeaderId(), Term: wire.GetTerm(),
		AppliedIndex: wire.GetAppliedIndex(), LastIndex: wire.GetLastIndex(), Version: wire.GetVersion(),
		FeatureLevel: wire.GetFeatureLevel(), Problem: wire.GetProblem(), Warning: wire.GetWarning(),
		Wall:        wire.GetWallMs(),
		CivilTime:   quota.CivilTime(wire.GetCivilTimeMs()),
		LedgerTime:  quota.Instant(wire.GetLedgerTimeMs()),
		LastContact: time.Duration(wire.GetLastContactMs()) * time.Millisecond,
		Instance:    wire.GetInstance(), PromoteWhenStable: wire.GetCandidate(),
		ClusterLevel: wire.GetClusterLevel(), RaftAddr: wire.GetRaftAddress(), HTTPAddr: wire.GetHttpAddress(),
		ClusterName: wire.GetClusterName(), Expect: int(wire.GetBootstrapExpect()), Intent: wire.GetBootstrapIntent(),
		LogStore: wire.GetLogStore(), TimeZones: wire.GetTimeZones(), Quarantined: wire.GetQuarantined(),
		Disk: cluster.DiskStatus{
			Free: wire.GetDiskFreeBytes(), Low: wire.GetDiskLow(), Slow: wire.GetDiskSlow(),
			WriteMean: time.Duration(wire.GetDiskWriteMeanUs()) * time.Microsecond,
		},
	}
	for _, said := range wire.GetStateDigests()[:min(maxStateDigests, len(wire.GetStateDigests()))] {
		standing.Checkpoints = append(standing.Checkpoints,
			cluster.Checkpoint{Index: said.GetIndex(), Digest: said.GetDigest()})
	}
	return standing
}
