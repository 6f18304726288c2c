package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/fsm"
)

// digestsKept is the number of checkpoints of a folder, the newest ones, whose digests are computed.
const digestsKept = 8

// QuarantinedError says that a node must not serve, because its state differs from that of the majority.
type QuarantinedError struct {
	// ID is the id of the node, Folder its data folder, Reason the finding.
	ID, Folder, Reason string
}

// Error names the finding and what to do.
func (e *QuarantinedError) Error() string {
	return fmt.Sprintf("node %s is in quarantine (%s). If a majority of the others is healthy, let it start over from "+
		"their state: quorate quarantine lift --discard --data-dir %s. If its state is equal to that of a majority "+
		"after all, prove it: quorate digest list --data-dir on each stopped member, then quorate quarantine lift; see "+
		"docs/operations.md, Divergence", e.ID, e.Reason, e.Folder)
}

// FolderDigests are the digests of the state in a data folder, recomputed from its snapshot and its log.
type FolderDigests struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Quarantine is why the node must not serve; empty if it may.
	Quarantine string `json:"quarantine,omitempty"`
	// Voters are those of the configuration in the folder.
	Voters []string `json:"voters"`
	// Digests are those of the last checkpoints and of the end of the log, by index.
	Digests []IndexDigest `json:"digests"`
}

// IndexDigest is the digest, in hexadecimal, of the state after a log entry.
type IndexDigest struct {
	Index  uint64 `json:"index"`
	Digest string `json:"digest"`
}

// digestAt is empty if there is none.
func (d FolderDigests) digestAt(index uint64) string {
	for _, known := range d.Digests {
		if known.Index == index {
			return known.Digest
		}
	}
	return ""
}

// ComputeDigests computes the digests of the state of a stopped node. The folder is not changed, except that unfinished
// snapshots are removed as at a start.
func ComputeDigests(dataDir string, logger hclog.Logger) (found FolderDigests, err error) {
	r, err := openStopped(dataDir, logger)
	if err != nil {
		return FolderDigests{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.stateDigests()
}

func (r *stoppedNode) stateDigests() (FolderDigests, error) {
	snapshots, err := r.prepareStores()
	if err != nil {
		return FolderDigests{}, err
	}
	var points []*fsm.Checkpointed
	keep := func(point *fsm.Checkpointed) {
		points = append(points[max(0, len(points)-digestsKept+1):], point)
	}
	replayed, machine, err := r.replayState(snapshots, fsm.Options{OnCheckpoint: keep})
	if err != nil {
		return FolderDigests{}, err
	}
	found := FolderDigests{ID: r.owner.ID, Cluster: r.owner.Cluster}
	for _, peer := range replayed.Before {
		if peer.IsVoter() {
			found.Voters = append(found.Voters, peer.ID)
		}
	}
	for _, point := range points {
		sum, err := point.Digest(context.Background())
		if err != nil {
			return FolderDigests{}, fmt.Errorf("compute the digest at index %d: %w", point.Index(), err)
		}
		found.Digests = append(found.Digests, IndexDigest{point.Index(), hex.EncodeToString(sum[:])})
	}
	end, err := endDigest(machine)
	if err != nil {
		return FolderDigests{}, err
	}
	if found.digestAt(end.Index) == "" {
		found.Digests = append(found.Digests, end)
	}
	found.Quarantine, err = cluster.QuarantineReason(r.store)
	return found, err
}

func endDigest(machine *fsm.FSM) (IndexDigest, error) {
	state, err := machine.TakeSnapshot()
	if err != nil {
		return IndexDigest{}, fmt.Errorf("compute the digest at the end of the log: %w", err)
	}
	sum := sha256.New()
	if err := state.Write(sum); err != nil {
		return IndexDigest{}, fmt.Errorf("compute the digest at the end of the log: %w", err)
	}
	return IndexDigest{state.Info().Index, hex.EncodeToString(sum.Sum(nil))}, nil
}

// Agreement is the index at which the state of a folder was proved to be that of a majority.
type Agreement struct {
	IndexDigest

	// ID is the id of the node, Members are the members with the same state, including the node.
	ID      string   `json:"id"`
	Members []string `json:"members"`
}

// LiftQuarantine allows a stopped node to serve again if the recomputed state of its folder is that of a majority of
// the voters, according to the digests of the others, at one index at or after the checkpoint of the quarantine.
func LiftQuarantine(dataDir string, others []FolderDigests, logger hclog.Logger) (proof Agreement, err error) {
	r, err := openStopped(dataDir, logger)
	if err != nil {
		return Agreement{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	own, err := r.stateDigests()
	if err != nil {
		return Agreement{}, err
	}
	if own.Quarantine == "" {
		return Agreement{}, fmt.Errorf("node %s is not in quarantine: there is nothing to lift", own.ID)
	}
	proof, err = findAgreement(own, others)
	if err != nil {
		return Agreement{}, err
	}
	return proof, cluster.LiftQuarantine(r.store)
}

func findAgreement(own FolderDigests, others []FolderDigests) (Agreement, error) {
	least := quarantinedAt(own.Quarantine)
	var found []string
	for _, point := range slices.Backward(own.Digests) {
		if point.Index < least {
			continue
		}
		same := []string{own.ID}
		for _, other := range others {
			digest := other.digestAt(point.Index)
			switch {
			case other.Cluster != own.Cluster || !slices.Contains(own.Voters, other.ID) ||
				slices.Contains(same, other.ID) ||
				digest == "":
			case digest == point.Digest:
				same = append(same, other.ID)
			default:
				found = append(found, fmt.Sprintf("%s holds another state at index %d", other.ID, point.Index))
			}
		}
		if slices.Contains(own.Voters, own.ID) && 2*len(same) > len(own.Voters) {
			return Agreement{IndexDigest: point, ID: own.ID, Members: same}, nil
		}
		found = append(found, fmt.Sprintf("at index %d the same state is confirmed only by %s", point.Index,
			strings.Join(same, ", ")))
	}
	if len(found) == 0 {
		found = append(found, fmt.Sprintf("the folder has no checkpoint from index %d on", least))
	}
	return Agreement{}, fmt.Errorf(
		"it is not proved that node %s holds the state of a majority of the voters %s (%s); "+
			"provide the digests of more members, or let it start over", own.ID,
		strings.Join(own.Voters, ", "), strings.Join(found, "; "))
}

var quarantineIndex = regexp.MustCompile(`at checkpoint (\d+)`)

// quarantinedAt is 0 if there is none.
func quarantinedAt(reason string) uint64 {
	match := quarantineIndex.FindStringSubmatch(reason)
	if match == nil {
		return 0
	}
	index, err := strconv.ParseUint(match[1], 10, 64)
	if err != nil {
		return 0
	}
	return index
}

// StartOver sets aside the state of a stopped node in quarantine and returns the folder that it was moved to. The node
// starts again like one that has lost its data: it takes part in nothing until the leader has demoted and admitted it.
func StartOver(dataDir string, logger hclog.Logger) (folder string, err error) {
	r, err := openStopped(dataDir, logger)
	if err != nil {
		return "", err
	}
	reason, err := cluster.QuarantineReason(r.store)
	if err == nil && reason == "" {
		err = fmt.Errorf("node %s is not in quarantine: it has no need to start over", r.owner.ID)
	}
	if err := errors.Join(err, r.closeStores()); err != nil {
		return "", errors.Join(err, r.lock.release())
	}
	f := &dataFolder{path: dataDir, log: logger, self: r.owner, lock: r.lock}
	err = errors.Join(f.startOver("its state was in quarantine"), f.close())
	return f.aside, err
}
