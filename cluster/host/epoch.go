package host

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/walstore"
)

// epoch names one use of a data folder, such as "7-Q3…": a number that grows, and a random text, so that two copies of
// one folder do not share an epoch. A new epoch begins with each start and with each orderly stop. It is written into
// raft.db, the log in segments, and identity.json: a part of another epoch than the rest was set back to an earlier
// copy, or is that of another folder (docs/adr/0126). Empty in folders of earlier versions.
type epoch string

func (e epoch) number() uint64 {
	digits, _, _ := strings.Cut(string(e), "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0 // also of the empty one, which is older than every other
	}
	return number
}

func (e epoch) next() epoch { return epoch(fmt.Sprintf("%d-%s", e.number()+1, rand.Text())) }

// epochKey is the key in raft.db of its storedEpochs.
var epochKey = []byte("quorate-epoch")

// storedEpochs are the epochs that raft.db knows. Next is set before the other parts get it, and becomes Current after
// all of them have it, so a crash in between leaves parts of these two epochs and no others.
type storedEpochs struct {
	Current epoch `json:"current"`
	Next    epoch `json:"next,omitempty"`
}

func readEpochs(store *boltstore.Store) (known storedEpochs, err error) {
	raw, err := store.Get(epochKey)
	if err != nil && err.Error() == "not found" || err == nil && len(raw) == 0 {
		return storedEpochs{}, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return known, fmt.Errorf("read the epoch of %s: %w", storeFile, err)
	}
	return known, nil
}

func (s storedEpochs) write(store *boltstore.Store) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = store.Set(epochKey, raw)
	}
	if err != nil {
		return fmt.Errorf("write the epoch of %s: %w", storeFile, err)
	}
	return nil
}

// compare says whether raft.db or a part of the folder was set back; empty if they belong together.
func (s storedEpochs) compare(part string, partEpoch epoch) string {
	const found = "%s was set back to an earlier copy, or replaced: it is of start or stop %d of this folder, and %s is " +
		"of %d"
	switch newest := max(s.Current.number(), s.Next.number()); {
	case partEpoch == s.Current || partEpoch == s.Next && partEpoch != "":
		return ""
	case partEpoch.number() > newest:
		return fmt.Sprintf(found, storeFile, newest, part, partEpoch.number())
	case partEpoch.number() < newest:
		return fmt.Sprintf(found, part, partEpoch.number(), storeFile, newest)
	default:
		return fmt.Sprintf("%s and %s do not belong together: one of them is a copy from elsewhere", storeFile, part)
	}
}

// checkEpochs compares the epochs of the parts of a folder and says what was lost by setting one back; empty if nothing
// was. It must come before the log is opened, because a raft.db that was set back does not know the newest segments.
//
// identity.json contains no state that could be lost, so an older one is only to be written again.
func checkEpochs(folder string, store *boltstore.Store, owner identity) (lost string, err error) {
	known, err := readEpochs(store)
	if err != nil {
		return "", err
	}
	if owner.Epoch.number() >= max(known.Current.number(), known.Next.number()) {
		lost = known.compare(identityFile, owner.Epoch)
	}
	kind, err := store.LogKind()
	if err != nil || lost != "" || kind != cluster.LogStoreWAL {
		return lost, err
	}
	path := filepath.Join(folder, walFolder)
	if there, err := pathExists(path); err != nil || !there {
		return "", err // openWAL reports it
	}
	logged, err := walstore.ReadEpoch(path)
	if err != nil {
		return "", err
	}
	return known.compare(walFolder, epoch(logged)), nil
}

// isIdentitySetBack reports whether only identity.json is of an earlier epoch. Versions that know no epochs write it
// without one.
func (f *dataFolder) isIdentitySetBack() (bool, error) {
	known, err := readEpochs(f.store)
	return f.self.Epoch != "" && known.compare(identityFile, f.self.Epoch) != "", err
}

// beginEpoch begins the next epoch of an open folder. Each step is durable before the next one. It costs a few syncs at
// each start and stop, and none between them.
//
// On a full disk the folder keeps the epoch that it has: it must open all the same.
func (f *dataFolder) beginEpoch() error {
	known, err := readEpochs(f.store)
	if err != nil {
		return err
	}
	if known.Next == "" { // otherwise some parts have the next one already, and no other than these two
		known.Next = known.Current.next()
	}
	return f.runEpochSteps(f.epochSteps(known))
}

func (f *dataFolder) runEpochSteps(steps []func() error) error {
	for _, step := range steps {
		if err := step(); errors.Is(err, syscall.ENOSPC) {
			f.log.Warn("the disk is full: a part of the data folder that is set back to a copy of before this moment would "+
				"not be noticed", "folder", f.path, "error", err)
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (f *dataFolder) epochSteps(known storedEpochs) []func() error {
	return []func() error{
		func() error { return known.write(f.store) },
		func() error {
			if f.logs.kind != cluster.LogStoreWAL {
				return nil
			}
			return walstore.WriteEpoch(filepath.Join(f.path, walFolder), string(known.Next))
		},
		func() error {
			f.self.Epoch = known.Next
			return f.self.writeFile(f.path)
		},
		func() error { return storedEpochs{Current: known.Next}.write(f.store) },
	}
}
