package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// Recovery says what Recover did, or would do.
type Recovery struct {
	// ID and Cluster are the identity of the folder.
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Index and Term are those of the last entry that is kept; State describes the state up to there.
	Index uint64   `json:"index"`
	Term  uint64   `json:"term"`
	State fsm.Info `json:"state"`
	// Before is the configuration that the folder had, After the new one.
	Before []Peer `json:"before"`
	After  []Peer `json:"after"`
	// Done is false if nothing was written.
	Done bool `json:"done"`
}

// Recover gives the data folder of a stopped node a new configuration, after the majority of the old one was lost for
// good. All entries in its log count as committed from then on. A dry run writes nothing.
//
// It refuses a folder that is in use, has no state, is damaged or incomplete, or is in quarantine, and peers that do
// not contain the folder's own node as a voter. Nothing is changed then.
func Recover(dataDir string, peers []Peer, dry bool, logger hclog.Logger) (done Recovery, err error) {
	r, err := openStopped(dataDir, logger)
	if err != nil {
		return Recovery{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.peers = peers
	if err := checkOwnPeer(peers, r.owner.ID); err != nil {
		return Recovery{}, err
	}
	reason, err := cluster.QuarantineReason(r.store)
	if err == nil && reason != "" {
		err = &QuarantinedError{ID: r.owner.ID, Folder: dataDir, Reason: reason}
	}
	if err != nil {
		return Recovery{}, err
	}
	return r.recoverFolder(dry)
}

func openStopped(dataDir string, logger hclog.Logger) (*stoppedNode, error) {
	owner, err := readOwner(dataDir)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(dataDir)
	if err != nil {
		return nil, err
	}
	store, err := boltstore.Open(filepath.Join(dataDir, storeFile), 0)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	r := &stoppedNode{folder: dataDir, owner: owner, lock: lock, store: store, logger: logger}
	lost, err := checkEpochs(dataDir, store, owner)
	if err == nil && lost != "" {
		err = &missingLogError{lost}
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	log, err := (folderLogs{dataDir, store, logger}).openExisting()
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.log, r.logs = log, raftguard.NewChecksum(log)
	return r, nil
}

func (r *stoppedNode) close() error { return errors.Join(r.closeStores(), r.lock.release()) }

func (r *stoppedNode) closeStores() error {
	var err error
	if r.log != nil {
		err = r.log.close()
	}
	return errors.Join(err, r.store.Close())
}

// readOwner reads the identity of a folder. It returns an error before anything is created in a folder that is not a
// data folder.
func readOwner(folder string) (identity, error) {
	for _, name := range []string{identityFile, storeFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return identity{}, fmt.Errorf("%s is not a data folder of a server: %w", folder, err)
		}
	}
	return readIdentity(folder)
}

type stoppedNode struct {
	folder string
	owner  identity
	peers  []Peer
	lock   *folderLock
	store  *boltstore.Store
	log    *logStore     // nil until it is open
	logs   raft.LogStore // log, verified with each read
	logger hclog.Logger
}

func (r *stoppedNode) recoverFolder(dry bool) (Recovery, error) {
	snapshots, err := r.prepareStores()
	if err != nil {
		return Recovery{}, err
	}
	found, machine, err := r.replayState(snapshots, fsm.Options{})
	if err != nil {
		return Recovery{}, err
	}
	state, err := machine.TakeSnapshot()
	if err != nil {
		return Recovery{}, fmt.Errorf("the state of %s cannot be recovered: %w", r.folder, err)
	}
	found.State = state.Info()
	if dry {
		return found, nil
	}
	return r.writeRecovered(found, snapshots)
}

// prepareStores verifies and repairs the folder as a start does.
func (r *stoppedNode) prepareStores() (raft.SnapshotStore, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(r.folder, snapshotsKept, r.logger)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", r.folder, err)
	}
	if err := r.prepare(snapshots); err != nil {
		return nil, err
	}
	history, err := raftguard.CheckHistory(r.logs, r.store, snapshots)
	switch lost := cmp.Or(history.Lost, r.owner.Lost); {
	case err != nil:
		return nil, err
	case history.Lost != "" || history.Empty && lost != "":
		return nil, fmt.Errorf(
			"%s has lost data (%s): what is left cannot be recovered; recover another member, or restore "+
				"a backup into a new cluster", r.folder, lost)
	case history.Empty:
		return nil, fmt.Errorf("%s holds no state: there is nothing to recover; a new node joins by itself", r.folder)
	}
	return snapshots, nil
}

func (r *stoppedNode) prepare(snapshots raft.SnapshotStore) error {
	return raftguard.Prepare(r.folder, snapshots, r.logs, fsm.CheckSnapshot, r.logger)
}

// replayState reads the whole state as raft would.
func (r *stoppedNode) replayState(snapshots raft.SnapshotStore, o fsm.Options) (Recovery, *fsm.FSM, error) {
	found := Recovery{ID: r.owner.ID, Cluster: r.owner.Cluster, After: r.peers}
	machine := fsm.New(o)
	if err := found.replaySnapshot(snapshots, machine); err != nil {
		return Recovery{}, nil, err
	}
	return found, machine, found.replayLog(r.logs, machine)
}

func (f *Recovery) replaySnapshot(snapshots raft.SnapshotStore, machine *fsm.FSM) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return err
	}
	meta, source, err := snapshots.Open(list[0].ID)
	if err != nil {
		return fmt.Errorf("open the newest snapshot: %w", err)
	}
	f.Index, f.Term, f.Before = meta.Index, meta.Term, fromConfiguration(meta.Configuration)
	return machine.Restore(source)
}

func (f *Recovery) replayLog(logs raft.LogStore, machine *fsm.FSM) error {
	last, err := logs.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	for i := f.Index + 1; i <= last; i++ {
		var entry raft.Log
		if err := logs.GetLog(i, &entry); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		f.Index, f.Term = entry.Index, entry.Term
		switch entry.Type { //nolint:exhaustive // the other types do not change the state
		case raft.LogCommand:
			machine.Apply(&entry)
		case raft.LogConfiguration:
			f.Before = fromConfiguration(raft.DecodeConfiguration(entry.Data))
		}
	}
	return machine.Halted()
}

// writeRecovered makes raft replace the log by a snapshot of the state with the new configuration.
func (r *stoppedNode) writeRecovered(found Recovery, snapshots raft.SnapshotStore) (Recovery, error) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(r.owner.ID)
	config.Logger = r.logger
	_, addresses := raft.NewInmemTransport("") // only to write addresses as raft does
	machine := fsm.Recovery{FSM: fsm.New(fsm.Options{Bounds: quota.DefaultBounds()})}
	if err := raft.RecoverCluster(config, machine, r.logs, r.store, snapshots, addresses,
		toConfiguration(r.peers)); err != nil {
		return Recovery{}, fmt.Errorf("recover %s: %w", r.folder, err)
	}
	found.Done = true
	return found, nil
}
