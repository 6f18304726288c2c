package clustertest

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// InjectDivergence changes the state of a stopped node that has a snapshot: its newest snapshot contains the effect of
// a command that is not in the log.
func (c *Cluster) InjectDivergence(id string, command quota.Command) {
	c.t.Helper()
	if err := InjectIntoSnapshot(c.disks[id].Snapshots, command); err != nil {
		c.t.Fatal(err)
	}
}

// InjectIntoSnapshot rewrites the newest snapshot of a store as if a command had been applied that is not in the log.
// The snapshot is consistent in itself, as after a memory fault: no checksum reveals it.
func InjectIntoSnapshot(snapshots raft.SnapshotStore, command quota.Command) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return fmt.Errorf("there is no snapshot to change (%w)", err)
	}
	meta, source, err := snapshots.Open(list[0].ID)
	if err != nil {
		return err
	}
	machine := fsm.New(fsm.Options{})
	if err := machine.Restore(source); err != nil {
		return err
	}
	data, err := fsm.EncodeEntry(quota.Stamp{At: machine.Now()}, []quota.Command{command})
	if err != nil {
		return err
	}
	machine.Apply(&raft.Log{Index: machine.Applied(), Type: raft.LogCommand, Data: data})
	planted, err := machine.Snapshot()
	if err != nil {
		return err
	}
	sink, err := snapshots.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	return errors.Join(planted.Persist(sink), machine.Halted())
}
