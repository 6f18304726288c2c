package nodes

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace with its own interfaces only. It has no name, so it ends with this process and
// those started in it.
type namespace struct{ file *os.File }

// threadsNamespace is the network namespace of the current thread.
const threadsNamespace = "/proc/thread-self/ns/net"

func newNamespace() (*namespace, error) {
	var made *os.File
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		made, err = os.Open(threadsNamespace)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &namespace{made}, nil
}

// runInside runs do on a thread in the namespace. Sockets and processes that do creates stay in the namespace.
func (n *namespace) runInside(do func() error) error {
	return onOwnThread(func() error {
		if err := n.enterThread(); err != nil {
			return err
		}
		return do()
	})
}

func (n *namespace) enterThread() error {
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter a network namespace: %w", err)
	}
	return nil
}

func (n *namespace) closeFile() error { return n.file.Close() }

// onOwnThread runs do, which may move its thread to another namespace, and moves the thread back. A thread that
// cannot be moved back ends with its goroutine.
func onOwnThread(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		original, err := thisNamespace()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err = do()
		back := original.enterThread()
		if back == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, back, original.closeFile())
	}()
	return <-done
}

// thisNamespace returns the namespace of the current thread.
func thisNamespace() (*namespace, error) {
	file, err := os.Open(threadsNamespace)
	if err != nil {
		return nil, fmt.Errorf("remember this network namespace: %w", err)
	}
	return &namespace{file}, nil
}
