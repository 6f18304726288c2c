package clustertest

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// InjectDivergence makes a node that does not run, and has a snapshot, hold another state than the others: in its newest
// snapshot a command has been carried out that is not in the log.
func (c *Cluster) InjectDivergence(id string, command quota.Command) {
	c.t.Helper()
	if err := InjectIntoSnapshot(c.disks[id].Snapshots, command); err != nil {
		c.t.Fatal(err)
	}
}

// InjectIntoSnapshot writes the newest snapshot of a store again, as it would be if a command had been carried out that is not
// in the log. Everything in it fits together, as after a fault in memory: no digest gives it away.
func InjectIntoSnapshot(snapshots raft.SnapshotStore, command quota.Command) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return fmt.Errorf("there is no snapshot to plant something in (%w)", err)
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
