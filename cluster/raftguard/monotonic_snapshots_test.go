package raftguard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
)

func newestIndex(t *testing.T, store raft.SnapshotStore) uint64 {
	t.Helper()
	list, err := store.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("list: %v, %v", list, err)
	}
	return list[0].Index
}

func TestSnapshotsNeverGoBack(t *testing.T) {
	stuck := make(chan struct{}, 10)
	snapshots := raftguard.NewMonotonicSnapshots(simnet.NewSnapshotStore(3), 2, func() { stuck <- struct{}{} },
		hclog.NewNullLogger())
	create := func(index uint64) (raft.SnapshotSink, error) {
		return snapshots.Create(1, index, 1, raft.Configuration{}, 1, nil)
	}
	for _, index := range []uint64{10, 10, 20} { // repeating an index is not a step back
		sink, err := create(index)
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			t.Fatalf("a snapshot at %d: %v", index, err)
		}
	}
	for range 4 {
		var older *raftguard.OlderSnapshotError
		if _, err := create(19); !errors.As(err, &older) || older.Index != 19 || older.Newest != 20 {
			t.Fatalf("a snapshot at 19 after one at 20: %v", err)
		}
	}
	for range 2 {
		select {
		case <-stuck:
		case <-time.After(time.Minute):
			t.Fatal("four refusals with a limit of two did not call twice")
		}
	}
	if got := newestIndex(t, snapshots); got != 20 {
		t.Errorf("the newest snapshot is at %d", got)
	}
}

func TestTheSameSnapshotAgainAndAgain(t *testing.T) {
	stuck := make(chan struct{}, 10)
	snapshots := raftguard.NewMonotonicSnapshots(simnet.NewSnapshotStore(3), 2, func() { stuck <- struct{}{} },
		hclog.NewNullLogger())
	complete := func(index uint64) {
		t.Helper()
		sink, err := snapshots.Create(1, index, 1, raft.Configuration{}, 1, nil)
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // three repetitions are one too few
		complete(10)
	}
	complete(20)
	if len(stuck) != 0 {
		t.Error("an election after three repetitions of a snapshot")
	}
	for range 20 {
		complete(20)
	}
	<-stuck
	time.Sleep(10 * time.Millisecond)
	if len(stuck) != 0 {
		t.Error("more than one election for one snapshot")
	}
}

func TestSnapshotOvertakenByANewerOneIsDropped(t *testing.T) {
	snapshots := raftguard.NewMonotonicSnapshots(simnet.NewSnapshotStore(3), 2, func() {}, hclog.NewNullLogger())
	slow, err := snapshots.Create(1, 10, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := snapshots.Create(1, 30, 1, raft.Configuration{}, 1, nil)
	if err == nil {
		err = quick.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var older *raftguard.OlderSnapshotError
	if err := slow.Close(); !errors.As(err, &older) {
		t.Errorf("an overtaken snapshot was completed: %v", err)
	}
	if list, _ := snapshots.List(); len(list) != 1 || newestIndex(t, snapshots) != 30 {
		t.Errorf("there are %d snapshots, the newest at %d", len(list), newestIndex(t, snapshots))
	}
}
