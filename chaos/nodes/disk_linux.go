package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// diskSize limits the disks that can be full. Only what they hold takes memory.
const diskSize = "256m"

// mountMark begins the source of all mounts of the harness. The process id of the harness follows.
const mountMark = "quorate-chaos-"

func mountName() string { return mountMark + strconv.Itoa(os.Getpid()) }

// newDisk has all faults that the machine supports. without says which are not supported.
func newDisk(below string) (d *Disk, without []string, err error) {
	d = &Disk{Backing: filepath.Join(below, "disk", "data"), Dir: filepath.Join(below, "data")}
	if err := os.MkdirAll(filepath.Dir(d.Backing), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make a disk: %w", err)
	}
	if err := d.mountLimited(filepath.Dir(d.Backing)); err != nil {
		without = append(without, fmt.Sprintf("truly full disks (%v)", err))
	}
	if err := errors.Join(os.MkdirAll(d.Backing, 0o700), os.MkdirAll(d.Dir, 0o700)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a disk: %w", err), d.unmountAll())
	}
	if err := d.mountFaulty(); err != nil {
		d.Dir = d.Backing
		without = append(without, fmt.Sprintf("slow, failing and torn disks (%v)", err))
	}
	return d, without, nil
}

func (d *Disk) mountLimited(at string) error {
	if err := unix.Mount(mountName(), at, "tmpfs", 0, "mode=0700,size="+diskSize); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	d.limited = true
	d.unmounts = append(d.unmounts, func() error { return detachMount(at) })
	return nil
}

// mountFaulty mounts a file system between the node and the backing folder that passes calls on unless a fault
// applies.
func (d *Disk) mountFaulty() error {
	var at unix.Stat_t
	if err := unix.Stat(d.Backing, &at); err != nil {
		return err
	}
	root := &fs.LoopbackRoot{Path: d.Backing, Dev: at.Dev}
	top := &faultyNode{LoopbackNode: fs.LoopbackNode{RootData: root}, disk: d}
	root.RootNode = top
	server, err := mountPrivate(d.Dir, top)
	if err != nil {
		return fmt.Errorf("mount a faulty disk: %w", err)
	}
	d.faulty = true
	d.unmounts = append(d.unmounts, func() error {
		err := server.Unmount()
		if err != nil {
			err = detachMount(d.Dir)
		}
		return err
	})
	return nil
}

// mountPrivate mounts a file system that ends with this process. The FUSE library opens /dev/fuse in a way that child
// processes inherit. A server with that descriptor could not exit while it waits for an answer from a harness that is
// gone: the file system ends only when the last descriptor is closed, and the server's own would be the last.
func mountPrivate(at string, top fs.InodeEmbedder) (*fuse.Server, error) {
	syscall.ForkLock.RLock() // no process is started until the descriptor is marked
	defer syscall.ForkLock.RUnlock()
	second := time.Second
	server, err := fs.Mount(at, top, &fs.Options{
		AttrTimeout: &second, EntryTimeout: &second,
		MountOptions: fuse.MountOptions{FsName: mountName(), Name: "chaos", DirectMountStrict: true},
	})
	if err != nil {
		return nil, err
	}
	if err := setCloseOnExec("/dev/fuse"); err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	return server, nil
}

// setCloseOnExec marks all descriptors of a file, so that child processes do not inherit them.
func setCloseOnExec(path string) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		if err != nil || target != path {
			continue // it may be closed by now
		}
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			return err
		}
		unix.CloseOnExec(number)
	}
	return nil
}

func detachMount(at string) error {
	if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	return nil
}

func unmountOrphans() error {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("look for orphaned mounts: %w", err)
	}
	defer file.Close() //nolint:errcheck // reading only
	var left []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !isOrphaned(fields[0]) {
			continue
		}
		left = append(left, fields[1])
	}
	var failed []error
	for _, at := range slices.Backward(left) {
		if err := detachMount(at); !errors.Is(err, unix.EINVAL) { // another harness was faster
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func isOrphaned(source string) bool {
	number, ours := strings.CutPrefix(source, mountMark)
	if _, err := strconv.Atoi(number); !ours || err != nil {
		return false
	}
	_, err := os.Stat("/proc/" + number)
	return errors.Is(err, os.ErrNotExist)
}
