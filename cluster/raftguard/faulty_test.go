package raftguard_test

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// errDisk is the error of a faulty disk.
var errDisk = errors.New("input/output error")

// faultyDisk is a store on a disk that fails once and then works again, as real disks do.
type faultyDisk struct {
	*raft.InmemStore

	mu      sync.Mutex
	failing string // the operation that fails next, "" for none
	failed  bool
	after   []string // operations that reached the disk after the failure
}

func (d *faultyDisk) failNext(operation string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = operation
}

func (d *faultyDisk) countCall(operation string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		d.after = append(d.after, operation)
	}
	if operation != d.failing {
		return nil
	}
	d.failing, d.failed = "", true
	return errDisk
}

// writesAfterFailure returns what reached the disk since it failed, and whether it has failed at all.
func (d *faultyDisk) writesAfterFailure() (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.after), d.failed
}

func (d *faultyDisk) StoreLog(entry *raft.Log) error { return d.StoreLogs([]*raft.Log{entry}) }

func (d *faultyDisk) StoreLogs(entries []*raft.Log) error {
	if err := d.countCall("StoreLogs"); err != nil {
		return err
	}
	return d.InmemStore.StoreLogs(entries)
}

func (d *faultyDisk) DeleteRange(first, last uint64) error {
	if err := d.countCall("DeleteRange"); err != nil {
		return err
	}
	return d.InmemStore.DeleteRange(first, last)
}

func (d *faultyDisk) GetLog(index uint64, entry *raft.Log) error {
	d.mu.Lock()
	failing := d.failing == "GetLog"
	d.mu.Unlock()
	if failing {
		return d.countCall("GetLog")
	}
	return d.InmemStore.GetLog(index, entry)
}

func (d *faultyDisk) Set(key, value []byte) error {
	if err := d.countCall("Set " + string(key)); err != nil {
		return err
	}
	return d.InmemStore.Set(key, value)
}

func (d *faultyDisk) SetUint64(key []byte, value uint64) error {
	if err := d.countCall("SetUint64 " + string(key)); err != nil {
		return err
	}
	return d.InmemStore.SetUint64(key, value)
}
