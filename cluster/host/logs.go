package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/walstore"
)

const (
	// walFolder contains the log of a node whose log store is cluster.LogStoreWAL.
	walFolder = "wal"
	// defaultLogStore is the log store of new data folders.
	defaultLogStore = cluster.LogStoreWAL
)

// logStore has the same guards around it for every kind.
type logStore struct {
	raft.LogStore

	kind  string
	close func() error
}

// LogStoreError says that a data folder has another log store than the configuration demands.
type LogStoreError struct {
	// Folder is the data folder, Has its log store, Want the one of the configuration.
	Folder, Has, Want string
}

// Error says how to get the other log store.
func (e *LogStoreError) Error() string {
	return fmt.Sprintf("data folder %s has the log store %q, and log-store is %q; start the server without log-store to "+
		"keep %q, or convert the folder first: quorate log convert --data-dir %s --log-store %s", e.Folder, e.Has, e.Want,
		e.Has, quoteArgument(e.Folder), e.Want)
}

// quoteArgument writes an argument as a shell reads it.
func quoteArgument(text string) string {
	if plainArgument.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// missingLogError says that the log of a folder is gone although its store remembers it.
type missingLogError struct{ lost string }

func (e *missingLogError) Error() string {
	return fmt.Sprintf("the data folder has lost data (%s): start the server, which sets aside what is left and joins "+
		"again", e.lost)
}

type folderLogs struct {
	folder string
	store  *boltstore.Store
	logger hclog.Logger
}

// open opens the log of a folder, or makes one in a folder that has none. want is the configured kind; empty for none.
// It returns a *missingLogError if the log is gone.
func (l folderLogs) open(want string) (*logStore, error) {
	if err := l.checkStore(); err != nil {
		return nil, err
	}
	kind, err := l.kind()
	if err != nil {
		return nil, err
	}
	switch {
	case kind == "":
		kind = cmp.Or(want, defaultLogStore)
		if err := l.make(kind); err != nil {
			return nil, err
		}
	case want != "" && want != kind:
		return nil, &LogStoreError{Folder: l.folder, Has: kind, Want: want}
	}
	return l.openKind(kind)
}

// openExisting opens the log of a folder that is not going to be used, and records nothing in it.
func (l folderLogs) openExisting() (*logStore, error) {
	if err := l.checkStore(); err != nil {
		return nil, err
	}
	kind, err := l.kind()
	if err != nil {
		return nil, err
	}
	return l.openKind(cmp.Or(kind, cluster.LogStoreBolt))
}

// checkStore returns a *missingLogError if there are segments with entries that raft.db does not know. Then raft.db is
// new, or older than the segments, and knows neither the log nor the newest votes. A migration never leaves this.
func (l folderLogs) checkStore() error {
	known, err := walstore.Exists(l.store)
	if err != nil || known {
		return err
	}
	used, err := walstore.HasEntries(filepath.Join(l.folder, walFolder))
	if err == nil && used {
		err = &missingLogError{fmt.Sprintf("%s does not know the log in %s: it was replaced or created anew", storeFile,
			walFolder)}
	}
	return err
}

// kind returns the kind of the log; empty if the folder has no log yet. A file with traces of use and without a
// kind has the log itself.
func (l folderLogs) kind() (string, error) {
	kind, err := l.store.LogKind()
	if err != nil || kind != "" {
		return kind, err
	}
	last, err := l.store.LastIndex()
	if err != nil || last > 0 {
		return cluster.LogStoreBolt, err
	}
	used, err := hasVoted(l.store)
	if err != nil || used {
		return cluster.LogStoreBolt, err
	}
	return "", nil
}

// hasVoted reports whether a node has ever taken part in a term with a stable store.
func hasVoted(stable raft.StableStore) (bool, error) {
	term, err := stable.GetUint64([]byte("CurrentTerm"))
	if err != nil && err.Error() != "not found" {
		return false, err
	}
	return term > 0, nil
}

func (l folderLogs) make(kind string) error {
	if kind == cluster.LogStoreWAL {
		if err := walstore.Create(l.walConfig()); err != nil {
			return err
		}
	}
	return l.recordKind(kind)
}

func (l folderLogs) recordKind(kind string) error {
	if err := l.store.SetLogKind(kind); err != nil {
		return fmt.Errorf("record the log store of data folder %s: %w", l.folder, err)
	}
	return nil
}

func (l folderLogs) walConfig() walstore.Config {
	return walstore.Config{Folder: filepath.Join(l.folder, walFolder), State: l.store, Logger: l.logger.Named("wal")}
}

// openKind also removes what a migration left of the other kind.
func (l folderLogs) openKind(kind string) (*logStore, error) {
	switch kind {
	case cluster.LogStoreBolt:
		if err := l.removeWAL(); err != nil {
			return nil, err
		}
		return l.boltLog(), nil
	case cluster.LogStoreWAL:
		return l.openWAL()
	}
	return nil, fmt.Errorf("data folder %s keeps its log in the log store %q, which this version does not know; start it "+
		"with the version that made it, or a newer one", l.folder, kind)
}

func (l folderLogs) boltLog() *logStore {
	return &logStore{LogStore: l.store, kind: cluster.LogStoreBolt, close: func() error { return nil }}
}

func (l folderLogs) openWAL() (*logStore, error) {
	config := l.walConfig()
	if _, err := os.Stat(config.Folder); errors.Is(err, os.ErrNotExist) {
		return nil, &missingLogError{fmt.Sprintf("%s with its log is gone, and %s is left", walFolder, storeFile)}
	}
	log, err := walstore.Open(config)
	if err != nil {
		return nil, err
	}
	if err := l.emptyBolt(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &logStore{LogStore: log, kind: cluster.LogStoreWAL, close: log.Close}, nil
}

// emptyBolt is idempotent.
func (l folderLogs) emptyBolt() error {
	first, err := l.store.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	last, err := l.store.LastIndex()
	if err == nil {
		err = l.store.DeleteRange(first, last)
	}
	if err != nil {
		return fmt.Errorf("remove the old log from %s: %w", filepath.Join(l.folder, storeFile), err)
	}
	l.logger.Info("removed the old log after a migration", "file", storeFile, "first", first, "last", last)
	return nil
}

// removeWAL removes a log in segments that raft.db knows, but does not use. It is idempotent.
func (l folderLogs) removeWAL() error {
	known, err := walstore.Exists(l.store)
	if err != nil || !known {
		return err
	}
	if err := walstore.Remove(l.walConfig()); err != nil {
		return err
	}
	l.logger.Info("removed the old log after a migration", "folder", walFolder)
	return nil
}
