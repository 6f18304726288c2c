package nodes

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func writeSynced(path string, size int) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, size))
	return errors.Join(err, file.Sync(), file.Close())
}

func faultyDisk(t *testing.T) *Disk {
	t.Helper()
	d, without, err := newDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.unmountAll(); err != nil {
			t.Error(err)
		}
	})
	if !d.Faulty() {
		t.Skip("left out here:", without)
	}
	return d
}

// TestDisk begins and ends each fault of a disk.
func TestDisk(t *testing.T) {
	d := faultyDisk(t)
	path := filepath.Join(d.Dir, "file")
	for _, c := range []struct {
		name       string
		begin, end func() error
		want       error
	}{
		{"a full disk", d.Fill, d.FreeSpace, syscall.ENOSPC},
		{"a failing fsync", func() error { d.FailSyncs(true); return nil }, clearFaults(d), syscall.EIO},
		{"a torn write", func() error { d.Tear(); return nil }, clearFaults(d), syscall.EIO},
	} {
		if err := writeSynced(path, 1<<16); err != nil {
			t.Fatalf("before %s: %v", c.name, err)
		}
		if err := c.begin(); err != nil {
			t.Fatal(err)
		}
		if err := writeSynced(path, 1<<20); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSynced(path, 1<<16); err != nil {
		t.Errorf("in the end: %v", err)
	}
	if err := d.removeContents(); err != nil {
		t.Error(err)
	}
}

// TestHangingDisk: an fsync returns only when the fault ends.
func TestHangingDisk(t *testing.T) {
	d := faultyDisk(t)
	d.Hang()
	written := make(chan error, 1)
	go func() { written <- writeSynced(filepath.Join(d.Dir, "file"), 1<<16) }()
	select {
	case err := <-written:
		t.Errorf("the fsync has returned: %v", err)
	case <-time.After(200 * time.Millisecond): // it waits
	}
	d.ClearFaults()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func clearFaults(d *Disk) func() error {
	return func() error { d.ClearFaults(); return nil }
}
