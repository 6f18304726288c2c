// Package logstoretest opens log stores of every kind for tests, and tests that all kinds behave alike.
package logstoretest

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/walstore"
)

// SmallSegment is a segment size with which a few entries fill a segment.
const SmallSegment = 4 << 10

// Stores are the open stores of a folder.
type Stores struct {
	// Logs is the log without guards.
	Logs raft.LogStore
	// Stable is the stable store, which belongs to both kinds of logs.
	Stable *boltstore.Store
	// Close closes both.
	Close func() error
}

// Kind is a kind of log store.
type Kind struct {
	// Name is the name in the configuration.
	Name string
	// Open opens the stores in a folder, and creates them if the folder is empty. segment is the size of a segment for
	// stores that have segments; 0 for their default.
	Open func(folder string, segment int) (Stores, error)
}

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{{cluster.LogStoreBolt, openBolt}, {cluster.LogStoreWAL, openWAL}}
}

func openBolt(folder string, _ int) (Stores, error) {
	store, err := boltstore.Open(filepath.Join(folder, "raft.db"), 0)
	if err != nil {
		return Stores{}, err
	}
	return Stores{Logs: store, Stable: store, Close: store.Close}, nil
}

func openWAL(folder string, segment int) (Stores, error) {
	state, err := boltstore.Open(filepath.Join(folder, "raft.db"), 0)
	if err != nil {
		return Stores{}, err
	}
	config := walstore.Config{Folder: filepath.Join(folder, "wal"), State: state, SegmentBytes: segment}
	if _, missing := os.Stat(config.Folder); errors.Is(missing, os.ErrNotExist) {
		if err := walstore.Create(config); err != nil {
			return Stores{}, errors.Join(err, state.Close())
		}
	}
	log, err := walstore.Open(config)
	if err != nil {
		return Stores{}, errors.Join(err, state.Close())
	}
	closeBoth := func() error { return errors.Join(log.Close(), state.Close()) }
	return Stores{Logs: log, Stable: state, Close: closeBoth}, nil
}

// OpenFolder opens the stores of a stopped server, of whichever kind its log is.
func OpenFolder(folder string) (Stores, error) {
	store, err := boltstore.Open(filepath.Join(folder, "raft.db"), 0)
	if err != nil {
		return Stores{}, err
	}
	kind, err := store.LogKind()
	if err := errors.Join(err, store.Close()); err != nil {
		return Stores{}, err
	}
	if kind == cluster.LogStoreWAL {
		return openWAL(folder, 0)
	}
	return openBolt(folder, 0)
}
