package raftguard_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
)

func TestRepairTailDropsOnlyWhatContradictsTheSnapshot(t *testing.T) {
	type entries map[uint64]uint64 // index to term
	const index, term = 5, 3       // of the snapshot
	tests := map[string]struct {
		log     entries
		dropped bool
	}{
		"empty log":                              {log: entries{}},
		"log that agrees":                        {log: entries{4: 2, 5: 3, 6: 3, 7: 4}},
		"log that ends with the snapshot":        {log: entries{4: 2, 5: 3}},
		"log that ends before it":                {log: entries{1: 1, 2: 2}},
		"log that starts after it":               {log: entries{6: 3, 7: 4}},
		"hole at it, as after a restored backup": {log: entries{3: 2, 4: 3, 6: 3, 7: 4}},
		"hole at it and below, later term above": {log: entries{1: 1, 6: 4}},
		"earlier term at it":                     {log: entries{4: 2, 5: 2, 6: 2}, dropped: true},
		"later term at it":                       {log: entries{4: 2, 5: 4, 6: 4}, dropped: true},
		"earlier term at it, the log's end":      {log: entries{4: 2, 5: 2}, dropped: true},
		"compacted up to it, earlier term above": {log: entries{6: 2, 7: 2}, dropped: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			disk := simnet.NewDisk(2)
			log := raftguard.NewChecksum(disk)
			for i := uint64(1); i <= 7; i++ {
				if entryTerm, ok := test.log[i]; ok {
					mustStore(t, log.StoreLog(&raft.Log{Index: i, Term: entryTerm}))
				}
			}
			addSnapshot(t, disk.Snapshots, 2, 1)
			addSnapshot(t, disk.Snapshots, index, term)
			dropped, err := raftguard.RepairTail(log, disk.Snapshots, hclog.NewNullLogger())
			if err != nil || dropped != test.dropped {
				t.Errorf("dropped: %v, error: %v", dropped, err)
			}
			want := len(test.log)
			if test.dropped {
				want = 0
			}
			if got := countEntries(log); got != want {
				t.Errorf("%d entries left, want %d", got, want)
			}
		})
	}
}

func TestRepairTailWithoutSnapshotKeepsTheLog(t *testing.T) {
	log := logOf(t, storedBytes(1, 9), 1)
	dropped, err := raftguard.RepairTail(log, simnet.NewSnapshotStore(1), hclog.NewNullLogger())
	if err != nil || dropped || countEntries(log) != 9 {
		t.Errorf("dropped: %v, error: %v, left: %d", dropped, err, countEntries(log))
	}
}

func TestRepairTailReportsAnEntryThatItCannotCompare(t *testing.T) {
	disk := simnet.NewDisk(1)
	mustStore(t, disk.StoreLog(&raft.Log{Index: 5, Term: 3})) // without a sum
	addSnapshot(t, disk.Snapshots, 5, 3)
	dropped, err := raftguard.RepairTail(raftguard.NewChecksum(disk), disk.Snapshots, hclog.NewNullLogger())
	if err == nil || dropped {
		t.Errorf("dropped: %v, error: %v", dropped, err)
	}
}

func countEntries(log raft.LogStore) int {
	n := 0
	for i := uint64(1); i < 20; i++ {
		if log.GetLog(i, &raft.Log{}) == nil {
			n++
		}
	}
	return n
}

func addSnapshot(t *testing.T, snapshots raft.SnapshotStore, index, term uint64) {
	t.Helper()
	sink, err := snapshots.Create(1, index, term, raft.Configuration{}, 1, nil)
	mustStore(t, err)
	_, err = sink.Write([]byte("state"))
	mustStore(t, err)
	mustStore(t, sink.Close())
	mustStore(t, sink.Close()) // as raft does
}

func TestWatchdogBarksOnlyAtRepeatedContradiction(t *testing.T) {
	type install struct{ index, term uint64 }
	stuck, fine := install{5, 3}, install{4, 2} // next to a log of term 2
	tests := map[string]struct {
		installs []install
		alarms   int64
	}{
		"snapshots that agree":     {installs: []install{fine, fine, fine, fine, fine}},
		"two that contradict":      {installs: []install{stuck, stuck}},
		"three that contradict":    {installs: []install{stuck, stuck, stuck}, alarms: 1},
		"many are one alarm":       {installs: []install{stuck, stuck, stuck, stuck, stuck}, alarms: 1},
		"progress in between":      {installs: []install{stuck, stuck, fine, stuck, stuck}},
		"beyond the log's end":     {installs: []install{{20, 3}, {20, 3}, {20, 3}}},
		"stuck at later snapshots": {installs: []install{{5, 3}, {6, 3}, {7, 3}}, alarms: 1},
		"stuck again, alarm again": {installs: []install{stuck, stuck, stuck, fine, stuck, stuck, stuck}, alarms: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var alarms atomic.Int64
				log := logOf(t, storedBytes(1, 9), 2)
				onStuck := func() { alarms.Add(1) }
				watchdog := raftguard.NewWatchdog(simnet.NewSnapshotStore(1), log, 3, onStuck, hclog.NewNullLogger())
				for _, i := range test.installs {
					addSnapshot(t, watchdog, i.index, i.term)
				}
				synctest.Wait()
				if got := alarms.Load(); got != test.alarms {
					t.Errorf("%d alarms, want %d", got, test.alarms)
				}
			})
		})
	}
}
