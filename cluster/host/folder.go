package host

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/atomicfile"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
)

const (
	storeFile       = "raft.db"
	snapshotsFolder = "snapshots"
	corruptFolder   = "snapshots-corrupt"
	// setAsideFolder and a number is the name of a folder for the remains of state that has lost a part. After maxSetAside
	// of them an operator must intervene.
	setAsideFolder = "set-aside-"
	maxSetAside    = 9
	// foreignStore says what is lost if raft.db has another name than identity.json.
	foreignStore = storeFile + " does not belong to this folder: it was replaced or created anew, so the log is gone"
)

// storeKey is the key in raft.db under which it names the data folder it belongs to.
var storeKey = []byte("quorate-store")

// dataFolder is an open data folder.
//
// A folder that has lost any part of its content is detected (docs/adr/0051), and the remains are set aside before raft
// can start on them. The order of the steps makes this true after a crash between any two of them: identity.json
// records the loss before anything is moved, and names a new raft.db only after that was created.
type dataFolder struct {
	path string
	log  hclog.Logger
	self identity
	lock *folderLock
	// logKind is the configured kind of the log; empty for none.
	logKind   string
	store     *boltstore.Store
	logs      *logStore
	snapshots raft.SnapshotStore
	// aside is the folder to which remains were moved; empty if there were none.
	aside string
}

// openFolder opens the data folder of a node, or creates it, with a log of the kind logKind; empty for that which it
// has. self.Lost of the result says what it has lost.
func openFolder(path string, self identity, logKind string, log hclog.Logger) (*dataFolder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	owner, err := readIdentity(path)
	if err != nil {
		return nil, err
	}
	if err := self.checkOwner(path, owner); err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	f := &dataFolder{path: path, log: log, self: self, lock: lock, logKind: logKind}
	err = f.openLocked()
	if err == nil {
		err = f.beginEpoch()
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *dataFolder) openLocked() error {
	owner, err := readIdentity(f.path) // again now that the folder is locked
	if err != nil {
		return err
	}
	if err := f.self.checkOwner(f.path, owner); err != nil {
		return err
	}
	f.self.Store, f.self.Lost, f.self.Epoch = owner.Store, owner.Lost, owner.Epoch
	if lost, err := f.missingStore(owner); err != nil || lost != "" {
		return errors.Join(err, f.startOver(lost))
	}
	err = f.openStores()
	var missing *missingLogError
	if errors.As(err, &missing) {
		return f.startOver(cmp.Or(owner.Lost, missing.lost))
	}
	if err != nil {
		return err
	}
	history, lost, err := f.checkHistory(owner)
	switch {
	case err != nil:
		return err
	case lost != "" && (history.Empty || history.TermOnly):
		return f.recordStore(lost) // no remains to set aside
	case lost != "":
		return f.startOver(lost)
	}
	return f.recordStore("")
}

// missingStore is empty if raft.db exists or the folder is new. raft.db is the first file that a new folder gets.
func (f *dataFolder) missingStore(owner identity) (string, error) {
	if there, err := pathExists(filepath.Join(f.path, storeFile)); err != nil || there {
		return "", err
	}
	if owner.ID != "" {
		return fmt.Sprintf("%s with its log, term and vote is gone, and %s is left", storeFile, identityFile), nil
	}
	trace, err := f.firstExisting(walFolder, snapshotsFolder, corruptFolder, setAsideFolder+"1")
	if err != nil || trace == "" {
		return "", err
	}
	return fmt.Sprintf("%s with its log, term and vote is gone, and %s is left", storeFile, trace), nil
}

// firstExisting is empty if none exists.
func (f *dataFolder) firstExisting(names ...string) (string, error) {
	for _, name := range names {
		if there, err := pathExists(filepath.Join(f.path, name)); err != nil || there {
			return name, err
		}
	}
	return "", nil
}

func (f *dataFolder) checkHistory(owner identity) (raftguard.History, string, error) {
	history, err := raftguard.CheckHistory(raftguard.NewChecksum(f.logs), f.store, f.snapshots)
	if err != nil {
		return history, "", err
	}
	named, err := f.storeName()
	switch {
	case err != nil:
		return history, "", err
	case owner.ID == "" && history.Empty:
		trace, err := f.firstExisting(corruptFolder, setAsideFolder+"1")
		if err == nil && trace != "" {
			return history, fmt.Sprintf("%s is gone and %s is empty, although %s is there", identityFile,
				storeFile, trace), nil
		}
		return history, "", err
	case owner.ID == "":
		return history, "", fmt.Errorf("data folder %s has a log but no identity (%s is missing); write "+
			"%s there if you know, or let the server join again as a new one with an empty folder", f.path,
			filepath.Join(f.path, identityFile), identityByHand)
	case history.Lost != "":
		return history, cmp.Or(owner.Lost, history.Lost), nil
	case owner.Lost != "" && (history.Empty || owner.Store != named):
		return history, owner.Lost, nil // not admitted yet, or the process crashed in between
	case owner.Store != "" && owner.Store != named:
		return history, foreignStore, nil
	}
	return history, "", nil
}

func (f *dataFolder) recordStore(lost string) error {
	named, err := f.storeName()
	if err != nil {
		return err
	}
	if named == "" {
		named = rand.Text()
		if err := f.store.Set(storeKey, []byte(named)); err != nil {
			return fmt.Errorf("name %s: %w", filepath.Join(f.path, storeFile), err)
		}
	}
	before := f.self
	f.self.Store, f.self.Lost = named, lost
	if lost != "" {
		f.log.Warn("the data folder has lost data: this node takes part in nothing until the leader of its cluster has "+
			"admitted it again", "folder", f.path, "lost", lost)
	}
	if there, err := pathExists(filepath.Join(f.path, identityFile)); err != nil || there && before == f.self {
		return err
	}
	return f.self.writeFile(f.path)
}

// storeName is empty if raft.db has no name yet.
func (f *dataFolder) storeName() (string, error) {
	name, err := f.store.Get(storeKey)
	if err != nil && err.Error() != "not found" {
		return "", err
	}
	return string(name), nil
}

// startOver sets aside the remains of state that has lost a part, and opens empty stores.
func (f *dataFolder) startOver(lost string) error {
	f.self.Store, f.self.Lost, f.self.Epoch = "", lost, ""
	if err := f.self.writeFile(f.path); err != nil {
		return err
	}
	if err := f.closeStore(); err != nil {
		return err
	}
	if err := f.setAside(); err != nil {
		return err
	}
	if err := f.openStores(); err != nil {
		return err
	}
	return f.recordStore(lost)
}

// setAside moves the remains to a folder where raft does not find them. Nothing is deleted, because an operator may
// need it.
func (f *dataFolder) setAside() error {
	var left []string
	for _, name := range []string{storeFile, walFolder, snapshotsFolder} {
		there, err := pathExists(filepath.Join(f.path, name))
		if err != nil {
			return err
		}
		if there {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	folder, err := f.newSetAside()
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Rename(filepath.Join(f.path, name), filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("set aside what is left of a data folder: %w", err)
		}
	}
	f.aside = folder
	f.log.Warn("set aside what is left of the data folder; remove it once the node serves again", "moved-to", folder,
		"names", left)
	if err := errors.Join(atomicfile.SyncFolder(folder), atomicfile.SyncFolder(f.path)); err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	return nil
}

func (f *dataFolder) newSetAside() (string, error) {
	for i := range maxSetAside {
		folder := filepath.Join(f.path, fmt.Sprint(setAsideFolder, i+1))
		err := os.Mkdir(folder, 0o700)
		if err == nil {
			return folder, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("set aside what is left of a data folder: %w", err)
		}
	}
	return "", fmt.Errorf("data folder %s has lost data %d times, and what was left is in %s1 to %d; find out why, "+
		"remove those and start the server again", f.path, maxSetAside, setAsideFolder, maxSetAside)
}

// openStores opens raft.db, the log and the snapshots, and verifies the snapshots before raft can start from them: raft
// itself would skip a corrupt one.
func (f *dataFolder) openStores() error {
	store, err := boltstore.Open(filepath.Join(f.path, storeFile), 0)
	if err != nil {
		return err
	}
	f.store = store
	if err := f.checkStoreName(); err != nil {
		return err
	}
	if err := f.checkEpoch(); err != nil {
		return err
	}
	if f.logs, err = (folderLogs{f.path, store, f.log}).open(f.logKind); err != nil {
		return err
	}
	swept, err := raftguard.SweepSnapshots(f.path)
	if err != nil {
		return err
	}
	if len(swept) > 0 {
		f.log.Info("removed unfinished snapshots", "names", swept)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(f.path, snapshotsKept, f.log.Named("snapshots"))
	if err != nil {
		return fmt.Errorf("open the snapshots in %s: %w", f.path, err)
	}
	f.snapshots = snapshots
	return raftguard.VerifySnapshots(f.path, snapshots, raftguard.NewChecksum(f.logs), fsm.CheckSnapshot, f.log)
}

// checkStoreName returns a *missingLogError if raft.db belongs to another folder and this one has segments, of which
// that raft.db has another list. Opening them with it would remove some.
func (f *dataFolder) checkStoreName() error {
	there, err := pathExists(filepath.Join(f.path, walFolder))
	if err != nil || !there || f.self.Store == "" && f.self.Lost == "" {
		return err
	}
	named, err := f.storeName()
	if err != nil || named == f.self.Store {
		return err
	}
	return &missingLogError{foreignStore}
}

// checkEpoch returns a *missingLogError if raft.db or the log was set back to an earlier copy.
func (f *dataFolder) checkEpoch() error {
	lost, err := checkEpochs(f.path, f.store, f.self)
	if err == nil && lost != "" {
		return &missingLogError{lost}
	}
	if err != nil {
		return err
	}
	setBack, err := f.isIdentitySetBack()
	if setBack {
		f.log.Warn("identity.json was set back to an earlier copy; the log and the votes were not, and it is written again",
			"folder", f.path)
	}
	return err
}

func (f *dataFolder) closeStore() error {
	if f.store == nil {
		return nil
	}
	var err error
	if f.logs != nil {
		err = f.logs.close()
	}
	err = errors.Join(err, f.store.Close())
	f.store, f.logs, f.snapshots = nil, nil, nil
	return err
}

func (f *dataFolder) close() error { return errors.Join(f.closeStore(), f.lock.release()) }

func pathExists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
