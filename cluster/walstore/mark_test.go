package walstore

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func newTestMark(t *testing.T, folder string) *ackMark {
	t.Helper()
	if err := createMark(folder); err != nil {
		t.Fatal(err)
	}
	mark, err := openMark(folder)
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// TestTheMarkIsSyncedWithinASecond appends every 10 ms for ten seconds: what was acknowledged a second ago is always on
// the disk, and the disk is not asked for more than one sync a second.
func TestTheMarkIsSyncedWithinASecond(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mark := newTestMark(t, folder)
		var synced uint64
		syncs := 0
		mark.sync = func() error {
			syncs++
			var err error
			synced, err = mark.read()
			return err
		}
		var acknowledged []uint64 // by tenths of a second
		for index := uint64(1); index <= 1000; index++ {
			if err := mark.write(index); err != nil {
				t.Fatal(err)
			}
			if index%10 == 0 {
				acknowledged = append(acknowledged, index)
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if old := len(acknowledged) - 12; old >= 0 && synced < acknowledged[old] {
				t.Fatalf("entry %d was acknowledged more than a second ago, and the mark on the disk is %d",
					acknowledged[old], synced)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if synced != 1000 || syncs > 11 {
			t.Errorf("after %d syncs the mark on the disk is %d", syncs, synced)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if syncs > 11 {
			t.Errorf("%d syncs: it is synced while nothing is written", syncs)
		}
		mark.sync = mark.file.Sync
		if err := mark.close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAMarkThatCannotBeSyncedFailsTheLog: after a failed sync it is unknown what is on the disk.
func TestAMarkThatCannotBeSyncedFailsTheLog(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mark := newTestMark(t, folder)
		broken := errors.New("input/output error")
		mark.sync = func() error { return broken }
		if err := mark.write(1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := mark.write(2); !errors.Is(err, broken) {
			t.Errorf("got %v from %s", err, filepath.Base(mark.path))
		}
		mark.sync = mark.file.Sync
		if err := mark.close(); err != nil {
			t.Error(err)
		}
	})
}
