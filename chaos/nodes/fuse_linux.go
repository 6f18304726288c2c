package nodes

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// faultyNode passes all calls on to a folder. Files opened in it have the disk's faults.
type faultyNode struct {
	fs.LoopbackNode
	disk *Disk
}

// WrapChild makes children faulty nodes too.
func (n *faultyNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	plain, ok := child.(*fs.LoopbackNode)
	if !ok {
		return child
	}
	return &faultyNode{LoopbackNode: fs.LoopbackNode{RootData: plain.RootData}, disk: n.disk}
}

// Open opens a file.
func (n *faultyNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, more, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrapFile(handle), more, errno
}

// Create creates and opens a file.
func (n *faultyNode) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if n.disk.full.Load() {
		return nil, nil, 0, syscall.ENOSPC
	}
	node, handle, more, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return node, n.wrapFile(handle), more, errno
}

// Fsync syncs a file, or the names in a folder.
func (n *faultyNode) Fsync(ctx context.Context, handle fs.FileHandle, flags uint32) syscall.Errno {
	if file, ok := handle.(*faultyFile); ok {
		return file.Fsync(ctx, flags)
	}
	return n.disk.faultySync()
}

func (n *faultyNode) wrapFile(handle fs.FileHandle) fs.FileHandle {
	if plain, ok := handle.(*fs.LoopbackFile); ok {
		return &faultyFile{plain, n.disk}
	}
	return handle
}

type faultyFile struct {
	*fs.LoopbackFile
	disk *Disk
}

// PassthroughFd refuses: the kernel would write directly to the backing file.
func (f *faultyFile) PassthroughFd() (int, bool) { return 0, false }

func (f *faultyFile) Write(ctx context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	switch {
	case f.disk.tear.CompareAndSwap(true, false):
		f.disk.torn.Store(true)
		if _, errno := f.LoopbackFile.Write(ctx, data[:len(data)/2], at); errno != 0 {
			return 0, errno
		}
		return 0, syscall.EIO
	case f.disk.torn.Load():
		return 0, syscall.EIO
	case f.disk.full.Load():
		return 0, syscall.ENOSPC
	}
	return f.LoopbackFile.Write(ctx, data, at)
}

// Allocate reserves space.
func (f *faultyFile) Allocate(ctx context.Context, at, size uint64, mode uint32) syscall.Errno {
	if f.disk.full.Load() {
		return syscall.ENOSPC
	}
	return f.LoopbackFile.Allocate(ctx, at, size, mode)
}

// Fsync syncs the file.
func (f *faultyFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if errno := f.disk.faultySync(); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

// faultySync applies the faults of every fsync.
func (d *Disk) faultySync() syscall.Errno {
	if delay := time.Duration(d.slow.Load()); delay > 0 {
		time.Sleep(delay)
	}
	if hung := d.hung.Load(); hung != nil {
		<-*hung
	}
	if d.fails.Load() || d.torn.Load() {
		return syscall.EIO
	}
	return 0
}
