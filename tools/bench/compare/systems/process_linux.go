package systems

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// startOwned starts a process that the kernel kills when this one ends. It does so when the thread that started the
// process ends, so one thread that never ends starts all of them. The process has its own group: an interrupt at the
// terminal reaches only this program, which then stops all others in order.
func startOwned(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	started := make(chan error, 1)
	starterThread() <- func() { started <- cmd.Start() }
	return <-started
}

var starterThread = sync.OnceValue(func() chan<- func() { //nolint:gochecknoglobals // one for the process
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlock it
		for do := range work {
			do()
		}
	}()
	return work
})

// memoryFileSystem is the type of tmpfs.
const memoryFileSystem = 0x01021994

// CheckDisk returns an error if a folder is in memory, where syncing costs nothing.
func CheckDisk(folder string) error {
	var info syscall.Statfs_t
	if err := syscall.Statfs(folder, &info); err != nil {
		return fmt.Errorf("examine the file system of %s: %w", folder, err)
	}
	if info.Type == memoryFileSystem {
		return fmt.Errorf("%s is in memory, where syncing costs nothing: name a folder on a disk with -dir", folder)
	}
	return nil
}
