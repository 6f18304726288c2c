package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// Recovery says what Recover did, or would do.
type Recovery struct {
	// ID and Cluster say whose folder it is.
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Index and Term are of the last entry that is kept; State is what the folder holds up to there.
	Index uint64   `json:"index"`
	Term  uint64   `json:"term"`
	State fsm.Info `json:"state"`
	// Before is the configuration that the folder had, After the new one.
	Before []Peer `json:"before"`
	After  []Peer `json:"after"`
	// Done is false if nothing was written.
	Done bool `json:"done"`
}

// Recover gives the stopped node of a data folder a new configuration, after the majority of the old one was lost for good.
// Everything in its log counts as committed from then on. A dry run only looks.
//
// It refuses a folder that a server uses, one without state or with damage, and peers without the folder's own node as
// a voter. Nothing was changed then.
func Recover(dataDir string, peers []Peer, dry bool, logger hclog.Logger) (Recovery, error) {
	me, err := ownerOf(dataDir)
	if err != nil {
		return Recovery{}, err
	}
	if err := checkOwn(peers, me.ID); err != nil {
		return Recovery{}, err
	}
	store, err := boltstore.Open(filepath.Join(dataDir, storeFile), 0)
	if err != nil {
		return Recovery{}, err
	}
	r := recovering{folder: dataDir, me: me, peers: peers, store: store, logs: raftguard.NewChecksum(store), logger: logger}
	done, err := r.run(dry)
	return done, errors.Join(err, store.Close())
}

// ownerOf reads whose folder it is. A folder that nobody has used is refused before anything is made in it.
func ownerOf(folder string) (identity, error) {
	for _, name := range []string{identityFile, storeFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return identity{}, fmt.Errorf("%s is no data folder of a server: %w", folder, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, identityFile))
	if err != nil {
		return identity{}, fmt.Errorf("read whose data folder %s is: %w", folder, err)
	}
	var me identity
	if err := json.Unmarshal(data, &me); err != nil || me.ID == "" {
		return identity{}, fmt.Errorf("%s does not say whose data folder it is (%q)", filepath.Join(folder, identityFile), data)
	}
	return me, nil
}

// recovering is one call of Recover.
type recovering struct {
	folder string
	me     identity
	peers  []Peer
	store  *boltstore.Store
	logs   raft.LogStore
	logger hclog.Logger
}

func (r recovering) run(dry bool) (Recovery, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(r.folder, snapshotsKept, r.logger)
	if err != nil {
		return Recovery{}, fmt.Errorf("open the snapshots in %s: %w", r.folder, err)
	}
	if err := raftguard.Prepare(r.folder, snapshots, r.logs, fsm.CheckSnapshot, r.logger); err != nil {
		return Recovery{}, err
	}
	before, err := r.look(snapshots)
	if err != nil || dry {
		return before, err
	}
	return r.write(before, snapshots)
}

// look reads all there is into a state machine, as raft will.
func (r recovering) look(snapshots raft.SnapshotStore) (Recovery, error) {
	if has, err := raft.HasExistingState(r.logs, r.store, snapshots); err != nil || !has {
		return Recovery{}, errors.Join(err, fmt.Errorf("%s holds no state: there is nothing to recover; a new node joins by itself", r.folder))
	}
	found := Recovery{ID: r.me.ID, Cluster: r.me.Cluster, After: r.peers}
	machine := fsm.New(fsm.Options{})
	if err := found.replaySnapshot(snapshots, machine); err != nil {
		return Recovery{}, err
	}
	if err := found.replayLog(r.logs, machine); err != nil {
		return Recovery{}, err
	}
	state, err := machine.Freeze()
	if err != nil {
		return Recovery{}, fmt.Errorf("the state of %s cannot be recovered: %w", r.folder, err)
	}
	found.State = state.Info()
	return found, nil
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
	f.Index, f.Term, f.Before = meta.Index, meta.Term, peersOf(meta.Configuration)
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
		switch entry.Type { //nolint:exhaustive // the others say nothing
		case raft.LogCommand:
			machine.Apply(&entry)
		case raft.LogConfiguration:
			f.Before = peersOf(raft.DecodeConfiguration(entry.Data))
		}
	}
	return machine.Halted()
}

// write lets raft make a snapshot of everything, with the new configuration, in the place of the log.
func (r recovering) write(found Recovery, snapshots raft.SnapshotStore) (Recovery, error) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(r.me.ID)
	config.Logger = r.logger
	_, addresses := raft.NewInmemTransport("") // only to write addresses as raft does
	machine := fsm.Recovery{FSM: fsm.New(fsm.Options{Bounds: quota.DefaultBounds()})}
	if err := raft.RecoverCluster(config, machine, r.logs, r.store, snapshots, addresses, configurationOf(r.peers)); err != nil {
		return Recovery{}, fmt.Errorf("recover %s: %w", r.folder, err)
	}
	found.Done = true
	return found, nil
}
